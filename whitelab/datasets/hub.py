"""Fetching a source from the Hugging Face hub: resumed where it was cut, checked, whole or not there at all.

huggingface_hub says where a file is and which checksum it has, and its `http_get` streams it: with the user's token
and mirror, trying again and going on after a cut. `hf_hub_download` would throw a cut file away, and where hf_xet
fetches for it, what `progress` raises is swallowed, so nobody could cancel.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from whitelab.base.hub import FULL, failure, line
from whitelab.base.progress import Progress, silent, ticker
from whitelab.base.wording import amount
from whitelab.datasets.archives import unpack
from whitelab.datasets.layouts import data_path, discover
from whitelab.datasets.pairs import DataError
from whitelab.datasets.sources import RECORD, Remote, Source, data_root, record_of, source_of

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")
LOCK_SECONDS = 2.0  # how long another process may hold a folder before we say so
MUCH_MORE = 2  # times the size we know; a larger file is not the one that was meant


class DownloadError(DataError):
    """A source that could not be fetched; the message says why and what to do."""


class LicenceNotAccepted(DownloadError):
    """The terms of a source were not accepted, so nothing was fetched."""


@dataclass(frozen=True)
class Announced:
    """What the hub says of a file: its bytes, and its sha256 or, of a small file, the sha1 that git gives it."""

    remote: Remote
    file: str
    url: str
    digest: str
    size: int


def fetch(
    source: Source | str, folder: Path | str | None = None, *, accept_licence: bool, progress: Progress = silent
) -> Path:
    """The folder of a source, fetched unless it is already here; `discover` and `load` read it.

    `folder` is `sources.data_root() / name` unless given, and then must be empty or not there yet. `progress(done,
    total)` counts bytes, every 10 MB as huggingface_hub writes them, and may raise to stop; what was written until
    then is kept and not fetched again by the next call. Every file is checked against the digest that the hub
    announces for the pinned commit, archives are unpacked as `archives.unpack` says, and the folder is moved to its
    place when all of it is there.

    Raises LicenceNotAccepted before anything is asked of the network; DownloadError in one line for no network, a
    repository that is gone or closed, too many requests (and when to try again), a fault of the hub, a wrong
    digest, a cut connection and a full disk; ArchiveError.
    """
    source = source_of(source) if isinstance(source, str) else source
    folder = data_root() / source.name if folder is None else data_path(folder).absolute()
    if _is_here(source, folder):
        return folder
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise DownloadError(f"folder={folder} must be empty or not there yet")
    if not accept_licence:
        raise LicenceNotAccepted(
            f"{source.name}: its terms must be accepted first. {source.terms} Accept them with accept_licence=True"
        )
    from filelock import FileLock

    name = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    lock = data_root() / ".locks" / f"{name}.lock"  # in the cache, so that a folder elsewhere stays clean
    with _failures_in_one_line(source, folder), FileLock(lock, timeout=LOCK_SECONDS):
        if not _is_here(source, folder):  # another process may have fetched it since
            _fetch(source, folder, progress)
    return folder


def _is_here(source: Source, folder: Path) -> bool:
    return (record_of(folder) or {}).get("source") == source.name


def _fetch(source: Source, folder: Path, progress: Progress) -> None:
    parts = folder.with_name(f".{folder.name}.parts")  # beside the folder, so that moving it is one rename
    parts.mkdir(parents=True, exist_ok=True)
    try:
        files = [_announced(source, remote, file) for remote in source.remotes for file in remote.files]
    except BaseException:
        with suppress(OSError):  # where it holds what an earlier call brought
            parts.rmdir()
        raise
    total = sum(file.size for file in files)
    needed, free = 2 * total, shutil.disk_usage(parts).free  # an archive and its content
    if needed - sum(path.stat().st_size for path in parts.iterdir() if path.is_file()) > free:
        raise DownloadError(f"{source.name}: {amount(needed)} are needed in {folder.parent}, {amount(free)} are free")
    done = 0
    for file in files:
        _bring(source, file, parts / file.digest, lambda here, of, before=done: progress(before + here, total))
        done += file.size
    whole = parts / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    for file in files:
        _place(source, file, parts / file.digest, whole, lambda: progress(total, total))
    _check_tasks(source, whole)
    record = {
        "source": source.name,
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
        "licence": source.licence,
        "files": [
            {"repo": file.remote.repo, "revision": file.remote.revision, "file": file.file, "digest": file.digest}
            for file in files
        ],
    }
    (whole / RECORD).write_text(json.dumps(record, indent=1), "utf-8")
    if folder.exists():
        folder.rmdir()
    whole.rename(folder)
    shutil.rmtree(parts, ignore_errors=True)


def _announced(source: Source, remote: Remote, file: str) -> Announced:
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(remote.repo, file, repo_type="dataset", revision=remote.revision)
    metadata = get_hf_file_metadata(url)
    digest, size = metadata.etag or "", metadata.size or 0
    right = metadata.commit_hash == remote.revision and re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", digest)
    if not right or not 0 < size <= MUCH_MORE * remote.size:
        raise DownloadError(
            f"{source.name}: {constants.ENDPOINT} does not announce {file} with its commit {remote.revision[:7]}, a "
            f"checksum and about {amount(remote.size)}, as the Hugging Face hub does: check HF_ENDPOINT and the proxy"
        )
    return Announced(remote, file, url, digest, size)


def _bring(source: Source, file: Announced, path: Path, progress: Progress) -> None:
    """Bring a file to `path`, going on after what is there, and check it."""
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers
    from huggingface_hub.utils.sha import git_hash

    if path.exists() and path.stat().st_size > file.size:
        path.unlink()
    with path.open("ab") as part:
        here = part.tell()
        progress(here, file.size)
        options = {"headers": build_hf_headers(), "expected_size": file.size, "tqdm_class": ticker(progress)}
        http_get(file.url, part, resume_size=here, **options)
    with path.open("rb") as part:
        git = len(file.digest) == 40
        digest = git_hash(part.read()) if git else hashlib.file_digest(part, "sha256").hexdigest()
    if digest != file.digest:
        path.unlink()
        raise DownloadError(
            f"{source.name}: {file.file} has the checksum {digest[:12]}... where the hub announces "
            f"{file.digest[:12]}...; it was thrown away. Try again"
        )


def _place(source: Source, file: Announced, path: Path, whole: Path, tick: Callable[[], None]) -> None:
    """A file where the readers look for it: an archive's content, or in a folder of its repository's name."""
    if file.file.endswith(ARCHIVES):
        wanted = set(source.wanted)
        unpack(path, whole, wanted=lambda name: not wanted or bool(wanted & set(name.split("/")[:-1])), tick=tick)
    else:
        target = whole / _inside(file.remote) / file.file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _inside(remote: Remote) -> str:
    """The folder, in that of the source, where files that are no archives lie."""
    return remote.repo.rpartition("/")[2]


def _by_hand(source: Source, folder: Path) -> str:
    """What to bring without this machine's network, and where it goes, in words."""
    brought = [
        f"{', '.join(remote.files)} of {remote.repo} at {remote.revision[:7]} "
        + ("unpacked" if remote.files[0].endswith(ARCHIVES) else f"into {_inside(remote)}")
        for remote in source.remotes
    ]
    return f"bring the files by hand into {folder} ({'; '.join(brought)}) and name that folder as the data"


def _check_tasks(source: Source, whole: Path) -> None:
    readable = set()
    with suppress(DataError):  # nothing at all to be read
        readable = {(info.name, split) for info in discover(whole) for split in info.splits}
    wanted = [(task, split) for task, splits in source.tasks.items() for split in splits]
    if missing := [f"{task} {split}" for task, split in wanted if (task, split) not in readable]:
        raise DownloadError(f"{source.name}: what was fetched does not hold {', '.join(missing)}")


@contextmanager
def _failures_in_one_line(source: Source, folder: Path) -> Iterator[None]:
    """Every failure of the network, the hub and the disk as a DownloadError that says what to do."""
    import httpx2
    from filelock import Timeout
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        yield
        return
    except HfHubHTTPError as error:
        reason = f"{failure(error)}{_refusal(source, error.response)}"
    except (OfflineModeIsEnabled, httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
        reason = f"{failure(error)}, or {_by_hand(source, folder)}"
    except (httpx2.InvalidURL, httpx2.HTTPError) as error:
        reason = failure(error)
    except Timeout:
        reason = f"another process is fetching it into {folder}; wait for that"
    except OSError as error:
        if error.errno in FULL:
            reason = f"the disk of {folder} is full: free some space, about {amount(2 * source.size)} are needed"
        elif error.errno is None:  # http_get's, of more or fewer bytes than were announced
            reason = f"what came is not what the hub announced ({line(error)}): try again"
        else:
            reason = f"{error.filename or folder} cannot be written ({error.strerror})"
    raise DownloadError(f"{source.name}: {reason}")


def _refusal(source: Source, response) -> str:
    """What a refusal means for who wants the data; empty where the status says it."""
    if response.status_code in (401, 403):
        terms = f"Accept its terms on {source.home} if it asks for that"
        return f": it is closed, or not there. {terms}, then set HF_TOKEN or run `hf auth login`"
    gone = response.status_code == 404
    return f": {response.url.path} is not there any more, see {source.home}" if gone else ""
