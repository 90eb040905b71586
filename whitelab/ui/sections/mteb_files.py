"""Results in MTEB's layout on the page: files of others read as rows of the table, the table's scores written."""

import io
import tempfile
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from whitelab.base.wording import plain
from whitelab.compare import AVERAGE, Cell, MtebScore, mteb_rows, read_mteb, write_mteb
from whitelab.compare.mteb_results import META
from whitelab.datasets import DataError
from whitelab.ui.widgets.uploader import uploader
from whitelab.whitening.export import zip_folder

LIMIT_MB = 5  # a file; those of the seven tasks have some kB
Row = tuple[str, str, dict]


def rows(tasks: Sequence[str]) -> list[Row]:
    """The rows of the files that the visitor gives, on `tasks`; none where nothing is given or can be read."""
    with st.expander("Beside results of MTEB", icon=":material/upload_file:"):
        words = f"TASK.json as mteb writes them; {META} among them says which model it was. Test scores become a row."
        files = uploader("Result files of one model", ["json"], "mteb-files", several=True, most=LIMIT_MB, help=words)
    if not files:
        return []
    try:
        scores = read([(file.name, file.getvalue()) for file in files])
    except DataError as error:
        st.error(plain(str(error)))
        return []
    columns = [*tasks, *([AVERAGE] if len(tasks) > 1 else [])]
    found = mteb_rows(scores, columns)
    if not found:
        there = dict.fromkeys(plain(f"{one.task} ({one.split})") for one in scores)
        st.info(f"These files have no test score of {', '.join(tasks)}: they are of {', '.join(there)}.")
    return found


def read(files: Sequence[tuple[str, bytes]]) -> tuple[MtebScore, ...]:
    """The scores in result files given by name and content, those of one model. Raises DataError as `read_mteb`."""
    with tempfile.TemporaryDirectory(prefix="whitelab-") as home:
        folder = Path(home) / "MTEB" / "given"
        folder.mkdir(parents=True)
        for number, (name, data) in enumerate(files):
            name = Path(name).name
            (folder / (name if name == META else f"{number}-{name}")).write_bytes(data)
        try:
            return read_mteb(folder)
        except DataError as error:
            raise DataError(str(error).replace(f"{folder}/", "").replace(str(folder), "These files")) from None


def packed(cells: Sequence[Cell]) -> bytes:
    """Every score in MTEB's layout, MODEL/SETTING/TASK.json, as a zip."""
    memory = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="whitelab-") as home:
        write_mteb(cells, home)
        zip_folder(home, memory, ".")
    return memory.getvalue()
