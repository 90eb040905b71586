import pytest

from whitelab.base.control_groups import MemoryLimit, memory_limits

UNIFIED = ("", "memory.max", "memory.current", "inactive_file")
LEGACY = ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def group(folder, layout, most, used=0, droppable=0):
    _, limit, taken, files = layout
    folder.mkdir(parents=True, exist_ok=True)
    (folder / limit).write_text(f"{most}\n")
    (folder / taken).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon {used}\n{files} {droppable}\n")


@pytest.fixture(params=[UNIFIED, LEGACY], ids=["version 2", "version 1"])
def layout(request):
    return request.param


@pytest.fixture
def own(tmp_path, layout):
    lines = {"": "0::{}\n", "memory": "3:cpu:/another\n2:memory:{}\n0::/another\n"}
    (tmp_path / "own").write_text(lines[layout[0]].format("/system.slice/whitelab@8501.service"))
    return tmp_path / "own"


def test_a_containers_limit_counts_and_files_that_can_be_dropped_are_left(tmp_path, layout):
    group(tmp_path / layout[0], layout, 1000, used=700, droppable=150)
    assert memory_limits(tmp_path, tmp_path / "no such file") == [MemoryLimit(1000, 450)]
    group(tmp_path / layout[0], layout, "max")
    assert memory_limits(tmp_path, tmp_path / "no such file") == []


def test_a_services_own_limit_counts_and_that_of_the_slice_it_lies_in(tmp_path, layout, own):
    home = tmp_path / layout[0]
    group(home, layout, "max")
    group(home / "system.slice", layout, 5000, used=4900)
    group(home / "system.slice/whitelab@8501.service", layout, 1000, used=700)
    assert memory_limits(tmp_path, own) == [MemoryLimit(1000, 300), MemoryLimit(5000, 100)]


def test_a_container_that_does_not_see_its_groups_name_has_the_limit_of_its_root(tmp_path, layout, own):
    group(tmp_path / layout[0], layout, 1000)
    assert memory_limits(tmp_path, own) == [MemoryLimit(1000, 1000)]
