"""Laws of result files on the page: what is read is what was written, and what is none is refused in a line."""

import io
import json
from zipfile import ZipFile

import pytest
from tiny import build_model, write_pairs

from whitelab.compare import Grid, compare
from whitelab.datasets import DataError
from whitelab.scoring.setting import parse_settings
from whitelab.ui.sections.mteb_files import packed, read


def test_what_the_page_writes_it_reads_back(tmp_path):
    pairs = write_pairs(tmp_path / "pairs.csv")
    model, settings = str(build_model(tmp_path / "model")), parse_settings("L1;L2:pca")
    cells = list(compare(Grid([model], str(pairs), ["pairs"], settings, "mteb")))
    with ZipFile(io.BytesIO(packed(cells))) as archive:
        names = archive.namelist()
        assert len(names) == 4
        for cell in cells:
            own = [
                name for name in names if name.split("/")[1] == str(cell.setting).replace("/", "_").replace(":", "_")
            ]
            (found,) = read([(name.split("/")[-1], archive.read(name)) for name in own])
            assert found.spearman == pytest.approx(cell.spearman)
            assert (found.model, found.task) == (cell.model, "pairs")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"no json", "These files: holds no cosine_spearman of any task"),
        (json.dumps({"task_name": "x", "scores": {"test": []}}).encode(), "These files: holds no cosine_spearman"),
        (
            json.dumps({"task_name": "x", "scores": {"test": [{"cosine_spearman": 43}]}}).encode(),
            "^0-x.json: cosine_spearman of test must be a number from -1 to 1, got 43",
        ),
    ],
)
def test_what_is_no_result_is_refused_in_a_line(data, message):
    with pytest.raises(DataError, match=message):
        read([("../x.json", data)])
