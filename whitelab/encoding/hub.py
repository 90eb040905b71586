"""Models from the Hugging Face hub: fetched once, and found again where the hub does not answer."""

from pathlib import Path

from whitelab.base.hub import FULL, failure
from whitelab.base.progress import Progress, ticker
from whitelab.base.wording import first_line
from whitelab.encoding.names import ModelError


def snapshot(name: str, patterns: tuple[str, ...], ignored: str, progress: Progress) -> Path:
    """The folder of `name`'s files that match `patterns` and not `ignored`, from the local cache or the hub.

    `progress(done, total)` counts bytes and may raise to stop. Raises ModelError in one line for a name that is none,
    a repository that is closed or not there, no network and a full disk.
    """
    from huggingface_hub import errors, snapshot_download

    check_repository(name)
    try:
        folder = snapshot_download(
            name, allow_patterns=list(patterns), ignore_patterns=[ignored], tqdm_class=ticker(progress)
        )
        return Path(folder)
    except errors.GatedRepoError:
        raise ModelError(
            f"model={name!r} is gated: accept its terms on its Hugging Face page, then set HF_TOKEN or run "
            f"`hf auth login`"
        ) from None
    except errors.RepositoryNotFoundError:
        raise ModelError(
            f"model={name!r} was not found on the Hugging Face hub: check the spelling, or set HF_TOKEN if it "
            f"is private"
        ) from None
    except errors.LocalEntryNotFoundError as error:  # the client fell back on what is here, of which there is nothing
        raise ModelError(
            f"model={name!r} is not on this machine, and {failure(error.__cause__)}; or name a local folder, or use "
            f"model='bundled'"
        ) from None
    except OSError as error:
        if error.errno in FULL:
            raise ModelError(f"model={name!r} does not fit on the disk: free some space and try again") from None
        raise ModelError(
            f"model={name!r} could not be downloaded ({first_line(error)}): try again, name a local folder, or "
            f"use model='bundled'"
        ) from None
    except Exception as error:  # the hub client has many more kinds of failure; none may reach a page
        raise ModelError(f"model={name!r} could not be downloaded: {failure(error)}") from None


def check_repository(name: str) -> None:
    """Raise ModelError for a name that cannot be one of a repository."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError:
        raise ModelError(
            f"model={name!r} must be 'bundled', a local folder or a Hugging Face name such as "
            f"google-bert/bert-base-uncased"
        ) from None


def cached_folder(name: str) -> Path | None:
    """The folder of what is already here of `name`, with its config.json; None where that is not here."""
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(name, "config.json")
    return Path(config).parent if isinstance(config, str) else None


def cached_models() -> tuple[str, ...]:
    """Names of the Hugging Face models already on this machine with safetensors weights."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        cache = scan_cache_dir()
    except (CacheNotFound, OSError):
        return ()
    return tuple(
        sorted(
            repo.repo_id
            for repo in cache.repos
            if repo.repo_type == "model"
            and any(file.file_name.endswith(".safetensors") for rev in repo.revisions for file in rev.files)
        )
    )
