"""A retrieval set in one .zip -> its files in memory."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from whitelab.base import upload_limits
from whitelab.datasets.archives import Limits, member_names, unpacked
from whitelab.datasets.pairs import DataError
from whitelab.datasets.tables import stem_of, suffix_of
from whitelab.datasets.uploads import File, Upload

QRELS_FOLDER = "qrels"
# What a visitor's archive may take in the server's memory: as much as a set of vectors.
OF_UPLOAD = Limits(files=1000, single=upload_limits.VECTORS_MB << 20, total=upload_limits.VECTORS_MB << 20)


def members(archive: File, endings: Sequence[str], contents: bool) -> tuple[str, list[Upload], list[Upload]]:
    """The name of the folder in `archive` that holds corpus.jsonl, its files, and those of the folder qrels in it.

    Only files of these endings count, whatever else was packed with them; without `contents` they are empty. Raises
    DataError for no such folder or two, ArchiveError for what `archives.unpack` refuses.
    """
    limits = OF_UPLOAD if isinstance(archive, Upload) else Limits()
    try:
        places = [PurePosixPath(name) for name in member_names(archive, limits) if _counts(name, endings)]
        folder = _folder(archive, places)
        groups = [[one for one in places if one.parent == home] for home in (folder, folder / QRELS_FOLDER)]
        names = {str(one) for group in groups for one in group}
        held = unpacked(archive, limits, names.__contains__) if contents else {}
    except OSError as error:
        raise DataError(f"{archive}: cannot be unpacked ({error.strerror or error})") from None
    bounded = isinstance(archive, Upload)

    def uploads(group: Sequence[PurePosixPath]) -> list[Upload]:
        return [Upload(f"{archive.name}/{one}", held.get(str(one), b""), bounded) for one in sorted(group)]

    return folder.name or stem_of(archive), uploads(groups[0]), uploads(groups[1])


def _counts(name: str, endings: Sequence[str]) -> bool:
    parts = PurePosixPath(name).parts
    # macOS adds a shadow of every file below __MACOSX.
    return suffix_of(Upload(name, b"")) in endings and not parts[-1].startswith(".") and parts[0] != "__MACOSX"


def _folder(archive: File, places: Sequence[PurePosixPath]) -> PurePosixPath:
    """Where the corpus lies."""
    folders = sorted({one.parent for one in places if "corpus" in one.name.lower() and ".jsonl" in one.suffixes})
    if len(folders) != 1:
        listed = ", ".join(map(str, folders)) or "none"
        raise DataError(f"{archive}: one folder with a corpus.jsonl must be packed in it; found: {listed}")
    return folders[0]
