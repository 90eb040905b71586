"""Fetching a source from the Hugging Face hub: resumed where it was cut, checked, whole or not there at all.

huggingface_hub says where a file is, which checksum it has and which token and mirror are in use. Its own
download throws a cut file away and sleeps through a 429 for as long as the server likes, neither of which can be
seen or cancelled, so the bytes are streamed here, over its session.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

from whitelab.base.progress import Progress
from whitelab.base.wording import amount
from whitelab.datasets.archives import unpack
from whitelab.datasets.layouts import data_path, discover
from whitelab.datasets.pairs import DataError
from whitelab.datasets.sources import RECORD, Remote, Source, data_root, record_of, source_of

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")
ASK_SECONDS = 10.0  # how long the hub may take to say what a file is
LOCK_SECONDS = 2.0  # how long another process may hold a folder before we say so
MUCH_MORE = 2  # times the size we know; a larger file is not the one that was meant


class DownloadError(DataError):
    """A source that could not be fetched; the message says why and what to do."""


class LicenceNotAccepted(DownloadError):
    """The terms of a source were not accepted, so nothing was fetched."""


@dataclass(frozen=True)
class Announced:
    """What the hub says of a file before it is fetched. `digest`: sha256, or the git blob's sha1 of a small file."""

    remote: Remote
    file: str
    url: str
    digest: str
    size: int

    @property
    def place(self) -> tuple[str, str]:
        """The repository's folder, and the file's name in it."""
        return self.remote.repo.rpartition("/")[2], self.file


def fetch(
    source: Source | str, folder: Path | str | None = None, *, accept_licence: bool, progress: Progress | None = None
) -> Path:
    """The folder of a source, fetched unless it is already here; `discover` and `load` read it.

    `folder` is `sources.data_root() / name` unless given, and then must be empty or not there yet. `progress(done,
    total)` counts bytes and may raise to stop; what came until then is kept and not fetched again by the next
    call. Every file is checked against the digest that the hub announces for the pinned commit, archives are
    unpacked as `archives.unpack` says, and the folder is moved to its place when all of it is there.

    Raises LicenceNotAccepted before anything is asked of the network; DownloadError in one line for no network, a
    repository that is gone or closed, too many requests (and when to try again), a fault of the hub, a wrong
    digest (the file is set aside), a cut connection and a full disk; ArchiveError.
    """
    source = source_of(source) if isinstance(source, str) else source
    folder = data_root() / source.name if folder is None else data_path(folder).absolute()
    if (record_of(folder) or {}).get("source") == source.name:
        return folder
    _check_free(folder)
    if not accept_licence:
        raise LicenceNotAccepted(
            f"{source.name}: its terms must be accepted first. {source.terms} Accept them with accept_licence=True "
            "(--accept-licence)"
        )
    with _told(source, folder), _locked(source, folder):
        if not record_of(folder):
            _fetch(source, folder, progress or (lambda done, total: None))
    return folder


def _fetch(source: Source, folder: Path, progress: Progress) -> None:
    parts = _parts(folder)
    parts.mkdir(parents=True, exist_ok=True)
    announced = [_announced(source, remote, file) for remote in source.remotes for file in remote.files]
    total = sum(one.size for one in announced)
    _check_space(source, parts, announced)
    done = 0
    for one in announced:
        _bring(source, parts / one.digest, one, lambda here, before=done: progress(before + here, total))
        done += one.size
    whole = parts / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    _assemble(source, parts, announced, whole, lambda: progress(total, total))
    _check_tasks(source, whole)
    record = {
        "source": source.name,
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
        "licence": source.licence,
        "files": [
            {"repo": one.remote.repo, "revision": one.remote.revision, "file": one.file, "digest": one.digest}
            for one in announced
        ],
    }
    (whole / RECORD).write_text(json.dumps(record, indent=1), "utf-8")
    _check_free(folder)
    if folder.exists():
        folder.rmdir()
    whole.rename(folder)
    shutil.rmtree(parts, ignore_errors=True)


def _parts(folder: Path) -> Path:
    """Where files lie until all are there: beside the folder, so that moving it is one rename."""
    return folder.with_name(f".{folder.name}.parts")


def _announced(source: Source, remote: Remote, file: str) -> Announced:
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(remote.repo, file, repo_type="dataset", revision=remote.revision)
    found = get_hf_file_metadata(url, timeout=ASK_SECONDS)
    digest = found.etag or ""
    if not found.commit_hash or not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", digest) or found.size is None:
        raise DownloadError(
            f"{source.name}: {_endpoint()} announces no commit, checksum or size for {file}, as the Hugging Face hub "
            "does: check HF_ENDPOINT and the proxy"
        )
    if found.commit_hash != remote.revision:
        raise DownloadError(
            f"{source.name}: {file} is announced at commit {found.commit_hash[:7]} where {remote.revision[:7]} is "
            "expected"
        )
    if found.size > MUCH_MORE * remote.size:
        raise DownloadError(
            f"{source.name}: {file} is announced with {amount(found.size)} where about {amount(remote.size)} are "
            "expected"
        )
    return Announced(remote, file, url, digest, found.size)


# ---------------------------------------------------------------------------------------------- one file


def _bring(source: Source, path: Path, one: Announced, report: Callable[[int], None]) -> None:
    """Bring a file to `path`, going on after what is there, and check it."""
    import httpx2

    have = path.stat().st_size if path.exists() else 0
    report(min(have, one.size))
    while have < one.size:
        before = have
        try:
            _stream(source, path, one, have, report)
        except httpx2.TransportError:
            if not path.exists() or path.stat().st_size <= before:
                raise  # nothing came: trying again at once would not help
        have = path.stat().st_size
        if have == before:
            raise DownloadError(f"{source.name}: {one.file} ended after {have} of {one.size} bytes; try again")
    if (found := _digest(path, one)) != one.digest:
        refused = path.with_suffix(".refused")
        path.replace(refused)
        raise DownloadError(
            f"{source.name}: {one.file} has the checksum {found[:12]}... where the hub announces {one.digest[:12]}...; "
            f"it was set aside as {refused} and not used. Try again"
        )


def _stream(source: Source, path: Path, one: Announced, have: int, report: Callable[[int], None]) -> None:
    """Append what the hub sends from byte `have` on, or write from the start where it sends the whole file."""
    from huggingface_hub import constants
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, http_stream_backoff

    headers = build_hf_headers() | {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    options = {"headers": headers, "timeout": constants.HF_HUB_DOWNLOAD_TIMEOUT}
    once = {"retry_on_exceptions": (), "retry_on_status_codes": ()}
    with http_stream_backoff("GET", one.url, **options, **once) as response:
        hf_raise_for_status(response)
        if response.status_code != 206:
            have = 0
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            raise DownloadError(f"{source.name}: the hub sent another part of {one.file} than asked for; try again")
        with path.open("ab" if have else "wb") as file:
            for chunk in response.iter_bytes():
                have += len(chunk)
                if have > one.size:
                    raise DownloadError(f"{source.name}: {one.file} is longer than the {one.size} bytes announced")
                file.write(chunk)
                report(have)


def _digest(path: Path, one: Announced) -> str:
    """The file's digest in the form that the hub announces: sha256, or git's of a file that is not in LFS."""
    with path.open("rb") as file:
        if len(one.digest) == 64:
            return hashlib.file_digest(file, "sha256").hexdigest()
        return hashlib.sha1(b"blob %d\0" % one.size + file.read(), usedforsecurity=False).hexdigest()


# ---------------------------------------------------------------------------------------------- the folder


def _assemble(source: Source, parts: Path, announced: list[Announced], whole: Path, tick: Callable[[], None]) -> None:
    """The files where the readers look for them: an archive's content, or a folder for each repository."""
    for one in announced:
        if one.file.endswith(ARCHIVES):
            unpack(parts / one.digest, whole, wanted=lambda name: _wanted(source, name), tick=tick)
        else:
            target = whole.joinpath(*one.place)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(parts / one.digest, target)


def _wanted(source: Source, name: str) -> bool:
    folders = name.split("/")[:-1]
    return not source.wanted or any(folder in source.wanted for folder in folders)


def _check_tasks(source: Source, whole: Path) -> None:
    found: dict[str, tuple[str, ...]] = {}
    with suppress(DataError):  # nothing at all to be read
        found = {info.name: info.splits for info in discover(whole)}
    missing = [
        f"{task} {split}"
        for task, splits in source.tasks.items()
        for split in splits
        if split not in found.get(task, ())
    ]
    if missing:
        raise DownloadError(f"{source.name}: what was fetched does not hold {', '.join(missing)}")


def _check_free(folder: Path) -> None:
    """Refuse a folder that holds something else."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise DownloadError(f"folder={folder} must be empty or not there yet")


def _check_space(source: Source, parts: Path, announced: list[Announced]) -> None:
    """Refuse early what will not fit: the bytes still to come, and an archive's content once more."""
    here = {path.name: path.stat().st_size for path in parts.iterdir() if path.is_file()}
    coming = sum(max(one.size - here.get(one.digest, 0), 0) for one in announced)
    needed = coming + sum(one.size for one in announced)
    free = shutil.disk_usage(parts).free
    if needed > free:
        raise DownloadError(f"{source.name}: {amount(needed)} are needed in {parts.parent}, {amount(free)} are free")


@contextmanager
def _locked(source: Source, folder: Path) -> Iterator[None]:
    """One process at a time; the lock lies in the cache, so that a folder elsewhere stays clean."""
    from filelock import Timeout
    from huggingface_hub.utils import WeakFileLock

    locks = data_root() / ".locks"
    locks.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    try:
        with WeakFileLock(locks / f"{name}.lock", timeout=LOCK_SECONDS):
            yield
    except Timeout:
        raise DownloadError(f"{source.name}: another process is fetching it into {folder}; wait for that") from None


# ---------------------------------------------------------------------------------------------- what went wrong


@contextmanager
def _told(source: Source, folder: Path) -> Iterator[None]:
    """Every failure of the network, the hub and the disk as one line that says what to do."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        yield
    except DataError:
        raise
    except OfflineModeIsEnabled:
        reason = "HF_HUB_OFFLINE is set, so nothing is fetched: unset it, or name a folder you have"
    except HfHubHTTPError as error:
        reason = _refusal(source, error) + _kept(folder)
    except httpx2.ProxyError as error:
        reason = f"the proxy does not let the request through ({_line(error)})"
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
        reason = f"HF_ENDPOINT={_endpoint()} is no address of a hub"
    except (httpx2.ConnectError, httpx2.ConnectTimeout):
        reason = (
            f"{_endpoint()} cannot be reached: connect to the internet, set HF_ENDPOINT to a mirror, or name a folder "
            "you have"
        )
    except httpx2.HTTPError as error:
        reason = f"the connection was cut ({_line(error)}): try again{_kept(folder)}"
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = (
                f"the disk of {folder} is full: free some space, about {amount(2 * source.size)} are needed"
                + _kept(folder)
            )
        else:
            reason = f"{error.filename or folder} cannot be written ({error.strerror or _line(error)})"
    else:
        return
    raise DownloadError(f"{source.name}: {reason}")


def _kept(folder: Path) -> str:
    """What is worth knowing before the next call."""
    parts = _parts(folder)
    held = sum(path.stat().st_size for path in parts.iterdir() if path.is_file()) if parts.is_dir() else 0
    return f"; the {amount(held)} that came are kept, and the next call goes on from there" if held else ""


def _refusal(source: Source, error) -> str:
    """What an HTTP status means for who wants the data."""
    status = error.response.status_code
    what = f"{_endpoint()} answered {status}"
    if status in (401, 403):
        return (
            f"{what}: it is closed, or not there. Accept its terms on {source.home} if it asks for that, then set "
            "HF_TOKEN or run `hf auth login`"
        )
    if status == 404:
        place = re.sub(r"^/datasets/|resolve/|(?<=/[0-9a-f]{7})[0-9a-f]{33}", "", error.response.url.path)
        return f"{what}: {place} is not there any more, see {source.home}"
    if status == 429:
        return f"{what}, too many requests: try again {_when(error.response.headers)}"
    if status >= 500:
        return f"{what}, a fault of its own: try again in a few minutes"
    return f"{what} ({_line(error)})"


def _when(headers) -> str:
    """When the hub lets us ask again: from its rate limit or Retry-After, as seconds or as a date."""
    from huggingface_hub.utils import parse_ratelimit_headers

    limit, after = parse_ratelimit_headers(headers), headers.get("Retry-After", "").strip()
    seconds = limit.reset_in_seconds if limit and limit.remaining == 0 else None
    if seconds is None and after.isdigit():
        seconds = int(after)
    elif seconds is None and after:
        with suppress(ValueError):
            seconds = max(parsedate_to_datetime(after).timestamp() - time.time(), 0)
    if seconds is None:
        return "in a few minutes"
    return f"in {seconds:.0f} s" if seconds < 120 else f"in {seconds / 60:.0f} min"


def _endpoint() -> str:
    from huggingface_hub import constants

    return constants.ENDPOINT


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
