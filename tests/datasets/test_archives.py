"""Laws of unpacking: an archive is written wholly or not at all, inside its folder, and within limits."""

import gzip
import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from whitelab.datasets.archives import ArchiveError, Limits, member_names, unpack

FILES = {"STS/a.txt": b"one\ttwo\n", "STS/deep/er/b.txt": b"", "SICK.txt": b"\x00\xff" * 700}


def tar(path: Path, files=FILES, mode="w", change=lambda info: None, kind=tarfile.REGTYPE) -> Path:
    with tarfile.open(path, mode) as packed:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(data) if kind == tarfile.REGTYPE else 0
            change(info)
            packed.addfile(info, io.BytesIO(data))
    return path


def zipped(path: Path, files=FILES, mode=0, flag=0) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(info, data)
    if flag:  # set in the local headers and in the directory, as an encrypting packer does
        data = bytearray(path.read_bytes())
        for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            data[data.index(magic) + offset] |= flag
        path.write_bytes(data)
    return path


PACKERS = {
    "a.tar": tar,
    "a.tar.gz": lambda path, files=FILES: tar(path, files, "w:gz"),
    "a.zip": zipped,
}


@pytest.fixture(params=PACKERS)
def packed(request, tmp_path):
    """A function that packs files in each of the three ways."""
    return lambda files=FILES: PACKERS[request.param](tmp_path / request.param, files)


def held(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def nothing_is_left(tmp_path: Path) -> bool:
    """The archive is all there is: no folder, and nothing set aside on the way to it."""
    return [entry.is_file() for entry in tmp_path.iterdir()] == [True]


def test_what_was_packed_is_unpacked(packed, tmp_path):
    paths = unpack(packed(), tmp_path / "out")
    assert held(tmp_path / "out") == FILES
    assert set(paths) == {tmp_path / "out" / name for name in FILES}
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_leading_dots_and_folder_entries_are_ordinary(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as file:
        for name in (".", "./STS"):
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE
            file.addfile(info)
        info = tarfile.TarInfo("./STS/a.txt")
        info.size = 2
        file.addfile(info, io.BytesIO(b"ab"))
    unpack(path, tmp_path / "out")
    assert held(tmp_path / "out") == {"STS/a.txt": b"ab"}


def test_only_what_is_wanted_is_written_and_judged(packed, tmp_path):
    files = FILES | {"../evil.txt": b"x"}
    paths = unpack(packed(files), tmp_path / "out", wanted=lambda name: name.startswith("STS/"))
    assert set(held(tmp_path / "out")) == {"STS/a.txt", "STS/deep/er/b.txt"}
    assert len(paths) == 2
    assert not (tmp_path / "evil.txt").exists()


OUTSIDE = ["/etc/passwd", "../evil", "STS/../../evil", "a\\b", "C:/evil", "c:evil", ".."]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_that_leads_out_of_the_folder_refuses_the_whole_archive(packed, tmp_path, name):
    path = packed(FILES | {name: b"x"})
    with pytest.raises(ArchiveError, match="leads out of the folder"):
        unpack(path, tmp_path / "out")
    assert nothing_is_left(tmp_path)


KINDS = {
    "symlink": tarfile.SYMTYPE,
    "hard link": tarfile.LNKTYPE,
    "pipe": tarfile.FIFOTYPE,
    "character device": tarfile.CHRTYPE,
    "block device": tarfile.BLKTYPE,
}


@pytest.mark.parametrize("kind", KINDS)
def test_links_and_devices_in_a_tar_are_refused(tmp_path, kind):
    path = tar(tmp_path / "a.tar", {"link": b""}, kind=KINDS[kind], change=lambda i: setattr(i, "linkname", "/etc"))
    with pytest.raises(ArchiveError, match="a.tar: 'link' is a link, a device or encrypted"):
        unpack(path, tmp_path / "out")
    assert nothing_is_left(tmp_path)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_in_a_zip_are_refused(tmp_path, kind):
    with pytest.raises(ArchiveError, match="is a link, a device or encrypted"):
        unpack(zipped(tmp_path / "a.zip", {"link": b"/etc"}, mode=kind | 0o777), tmp_path / "out")
    assert nothing_is_left(tmp_path)


def test_a_zip_member_without_a_name_is_refused(tmp_path):
    path = zipped(tmp_path / "a.zip", {"name": b"b"})
    path.write_bytes(path.read_bytes().replace(b"name", b"\0ame"))  # zipfile reads names as far as a NUL
    with pytest.raises(ArchiveError, match="leads out of the folder"):
        unpack(path, tmp_path / "out")
    assert member_names(path) == ()


def test_a_plain_file_with_its_mode_is_no_device(tmp_path):
    """The negative control of the two tests above."""
    unpack(zipped(tmp_path / "a.zip", {"a": b"b"}, mode=stat.S_IFREG | 0o644), tmp_path / "out")
    assert held(tmp_path / "out") == {"a": b"b"}


def test_an_encrypted_zip_is_refused(tmp_path):
    with pytest.raises(ArchiveError, match="encrypted"):
        unpack(zipped(tmp_path / "a.zip", {"a": b"b"}, flag=1), tmp_path / "out")


def test_permissions_owners_and_links_to_come_are_left_behind(tmp_path):
    def change(info):
        info.mode, info.uid, info.gid = 0o4777, 0, 0

    (path,) = unpack(tar(tmp_path / "a.tar", {"a": b"b"}, change=change), tmp_path / "out")
    assert not path.stat().st_mode & (stat.S_ISUID | 0o111)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(files=2), "more than 2 members"),
        (Limits(single=1000), "'SICK.txt' is larger than 1000 bytes"),
        (Limits(total=1000), "unpacks to more than 1000 bytes"),
    ],
)
def test_more_than_the_limits_allow_is_refused(packed, tmp_path, limits, message):
    with pytest.raises(ArchiveError, match=message):
        unpack(packed(), tmp_path / "out", limits)
    assert nothing_is_left(tmp_path)


def test_exactly_what_the_limits_allow_is_unpacked(tmp_path):
    total = sum(map(len, FILES.values()))
    limits = Limits(files=len(FILES), single=max(map(len, FILES.values())), total=total)
    for name in ("a.tar", "a.zip"):  # a tar.gz counts the tar's own blocks as well
        assert len(unpack(PACKERS[name](tmp_path / name), tmp_path / f"{name}-out", limits)) == len(FILES)


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip"])
def test_a_bomb_is_refused_by_its_ratio(tmp_path, name):
    path = PACKERS[name](tmp_path / name, {"zeros": bytes(20 << 20)})
    assert path.stat().st_size < 100_000
    with pytest.raises(ArchiveError, match="unpacks to more than"):
        unpack(path, tmp_path / "out")
    assert nothing_is_left(tmp_path)
    assert unpack(path, tmp_path / "out", Limits(ratio=2000.0))  # the negative control: it is the ratio that refuses


def test_a_bomb_among_what_is_not_wanted_is_not_decompressed_either(tmp_path):
    path = PACKERS["a.tar.gz"](tmp_path / "a.tar.gz", {"zeros": bytes(20 << 20), "a": b"b"})
    with pytest.raises(ArchiveError, match="unpacks to more than"):
        unpack(path, tmp_path / "out", wanted=lambda name: name == "a")


def test_a_zip_that_lies_about_a_size_is_refused(tmp_path):
    path = zipped(tmp_path / "a.zip", {"a": bytes(5000)})
    data = path.read_bytes().replace((5000).to_bytes(4, "little"), (50).to_bytes(4, "little"))
    path.write_bytes(data)
    with pytest.raises(ArchiveError, match="not a readable"):
        unpack(path, tmp_path / "out")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("names", [("a", "./a"), ("a", "a/b"), ("a/b", "a")])
def test_two_members_of_one_name_are_refused(packed, tmp_path, names):
    with pytest.raises(ArchiveError, match="two of its members share a name"):
        unpack(packed(dict.fromkeys(names, b"x")), tmp_path / "out")
    assert nothing_is_left(tmp_path)


def test_a_cut_archive_is_refused(packed, tmp_path):
    path = packed({f"{i}": bytes([i]) * 3000 for i in range(9)})
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * 0.6)])
    with pytest.raises(ArchiveError, match="not a readable tar, tar.gz or zip archive"):
        unpack(path, tmp_path / "out")
    assert nothing_is_left(tmp_path)


@pytest.mark.parametrize(
    "data",
    [b"", b"PK", b"\x1f\x8b", b"not an archive" * 99, gzip.compress(b"no tar" * 200, mtime=0)],
    ids=["nothing", "PK", "magic alone", "text", "gz of text"],
)
def test_what_is_no_archive_is_refused(tmp_path, data):
    path = tmp_path / "a.bin"
    path.write_bytes(data)
    with pytest.raises(ArchiveError, match="a.bin: not a readable"):
        unpack(path, tmp_path / "out")
    assert nothing_is_left(tmp_path)


def test_an_existing_folder_is_left_alone(packed, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("kept")
    with pytest.raises(ArchiveError, match="must not exist"):
        unpack(packed(), tmp_path / "out")
    assert held(tmp_path / "out") == {"mine": b"kept"}


def test_who_stops_it_finds_nothing(packed, tmp_path):
    calls = []

    def stop():
        calls.append(1)
        if len(calls) == 2:
            raise InterruptedError("stopped")

    with pytest.raises(InterruptedError):
        unpack(packed(), tmp_path / "out", tick=stop)
    assert nothing_is_left(tmp_path)
