"""The papers' tables: read whole, agreeing with themselves and each other but for the contradictions listed here."""

import random
import re
from collections import Counter
from dataclasses import replace
from math import comb

import pytest

from whitelab.compare import published
from whitelab.compare.published import PrintedRow, lookup, numbers, read, tables
from whitelab.datasets import DataError

EVERY = numbers()
STS = ("stsb", "sickr", "sts12", "sts13", "sts14", "sts15", "sts16")
UNITS = {
    "Spearman x 100": (0, 100),
    "Pearson x 100": (0, 100),
    "accuracy %": (0, 100),
    "points": (0, 35),
    "million parameters": (100, 1000),
    "billion parameters": (1, 200),
}
# Cells and average are rounded to two digits: each is off by at most 0.005.
ROUNDING = 0.01 + 1e-9

# (paper, edition, table): printed rows, columns, numbers
SHAPES = {
    ("whiteningbert", "emnlp", "Table 1"): (25, 8, 25 * 8),
    ("whiteningbert", "emnlp", "Figure 1"): (3 * 13 + 7, 1, 3 * comb(14, 2) + comb(8, 2)),
    ("whiteningbert", "arxiv", "Table 1"): (25, 8, 25 * 8),
    ("whiteningbert", "arxiv", "Table 2"): (24, 9, 24 * (8 + 8 + 1)),
    ("whiteningbert", "arxiv", "Table 3"): (9, 2, 9 * 2),
    ("bert-whitening", "arxiv", "Table 1"): (19, 7, 19 * 7),
    ("bert-whitening", "arxiv", "Table 2"): (22, 7, 22 * 7),
    ("bert-whitening", "arxiv", "Figure 1"): (1, 1, 1),
    ("whitenedcse", "acl", "Table 1"): (22, 8, 22 * 8),
    ("whitenedcse", "acl", "Table 2"): (13, 8, 13 * 8),
    ("whitenedcse", "acl", "Table 3"): (5, 1, 5),
    ("whitenedcse", "acl", "Table 4"): (2, 1, 2 * 8),
    ("whitenedcse", "acl", "Table 5"): (1, 1, 4),
    ("whitenedcse", "acl", "Table 6"): (5, 2, 5 + 4),
    ("w-mse", "icml", "Table 1"): (4, 8, 4 * 8),
    ("w-mse", "icml", "Table 2"): (4, 3, 4 * 3),
    ("w-mse", "icml", "Table 3"): (6, 1, 6 * 2),
    ("w-mse", "icml", "Table 4"): (4, 2, 4 * 2),
    ("w-mse", "icml", "Table 5"): (4, 2, 4 * 2),
}

# What the papers say twice, differently. Kept as printed.
OFF_AVERAGE = {("whitenedcse", "Table 2", "Avg. BERT embeddings", "avg last none"): 0.0143}
TABLE_1_AGAINST_2 = {
    ("distilbert", "none"): {"sts12": ("59.67", "59.68")},
    ("labse", "none"): {"sts12": ("68.30", "68.29")},
}
WHITENED_AVERAGES = {  # Table 1, Table 2
    "bert-base": ("67.76", "67.77"),
    "roberta-base": ("67.72", "67.17"),
    "distilbert": ("68.30", "67.48"),
    "labse": ("71.71", "71.71"),
}
TABLE_1_AGAINST_FIGURE_1 = {("distilbert", "avg L1 none"): ("59.89", "59.90")}


def line_of(number):
    """What tells a line of numbers from every other."""
    return (number.paper, number.edition, number.table, number.section, number.row, number.setting)


def lines(found):
    """{line: {column: number}} of the numbers given."""
    held = {}
    for number in found:
        held.setdefault(line_of(number), {})[number.column] = number
    return held


def averaged(found):
    """{line: {column: number}} of the lines with cells and an average of them."""
    return {key: cells for key, cells in lines(found).items() if "avg" in cells and len(cells) >= 7}


def off_average(found):
    """{line: difference} where the mean of the cells is not the printed average up to rounding."""
    off = {}
    for (paper, _, table, _, row, setting), cells in averaged(found).items():
        values = [n.value for name, n in cells.items() if name not in ("avg", "gain") and n.value is not None]
        difference = sum(values) / len(values) - cells["avg"].value
        if abs(difference) > ROUNDING:
            off[paper, table, row, setting] = round(difference, 4)
    return off


def printed(found):
    """{column: printed text} of one line."""
    return {number.column: number.printed for number in found}


def cell(paper, table, row, column, setting=None, **where):
    """The one number of a cell named by its printed row, as text."""
    found = [n for n in numbers(paper, table, column=column, **where) if n.row == row]
    (one,) = {n.printed for n in found if setting is None or n.setting == setting}
    return one


# ------------------------------------------------------------------------------------------- whole and readable


def test_every_number_is_complete_and_readable():
    for number in EVERY:
        where = f"{line_of(number)} {number.column}"
        for name in ("paper", "edition", "table", "row", "model", "column", "unit"):
            assert getattr(number, name), f"{where}: no {name}"
        assert all(text == text.strip() for text in vars(number).values()), where
        assert re.fullmatch(r"[+]?\d+(\.\d+)?", number.printed) or number.note.startswith("no value; printed"), where
        assert number.aggregate in ("", "all", "mean", "wmean"), where
        assert number.mark in ("", "up", "down", "second"), where
        assert re.fullmatch(r"[a-z0-9.-]+", number.column), where
        assert re.fullmatch(r"[a-z0-9.-]+", number.model), where


def test_every_setting_reads_back_as_it_is_written():
    settings = {number.setting for number in EVERY}
    assert len(settings) > 100
    assert {text: str(PrintedRow.parse(text)) for text in settings} == {text: text for text in settings}


def test_values_lie_in_the_range_of_their_unit():
    assert {number.unit for number in EVERY} == set(UNITS)
    for number in EVERY:
        low, high = UNITS[number.unit]
        assert number.value is None or low < number.value < high, number
    similarities = [n.value for n in EVERY if n.unit == "Spearman x 100" and n.value is not None]
    assert 14 < min(similarities) < max(similarities) < 87


def test_a_missing_value_says_what_is_printed_instead():
    missing = Counter((n.paper, n.table, n.note) for n in EVERY if n.value is None)
    assert sum(missing.values()) == 2 * 3 + 2 + 2  # SIF in two editions, k-nn of two methods, a run that diverged
    assert missing["w-mse", "Table 4", 'no value; printed "diverged" across both columns'] == 2


def test_the_tables_have_the_rows_and_columns_of_the_papers():
    found = {(t.paper, t.edition, t.name): (len(t.rows), len(t.columns), len(t.numbers)) for t in tables()}
    assert found == SHAPES


def test_no_cell_is_there_twice():
    counted = Counter((*line_of(number), number.column) for number in EVERY)
    assert [key for key, count in counted.items() if count > 1] == []


def test_a_figure_has_every_pair_of_layers_once():
    for model, last in (("bert-base", 12), ("roberta-base", 12), ("labse", 12), ("distilbert", 6)):
        found = [PrintedRow.parse(n.setting).layers for n in numbers("whiteningbert", "Figure 1", model=model)]
        expected = [(i,) if i == j else (i, j) for j in range(last + 1) for i in range(j + 1)]
        assert found == expected


# ------------------------------------------------------------------------------------ agreeing with the averages


def test_the_mean_of_a_row_is_the_printed_average_but_for_the_rows_listed():
    assert len(averaged(EVERY)) == 25 + 25 + 24 * 2 + 22 + 13
    assert off_average(EVERY) == OFF_AVERAGE


@pytest.mark.parametrize("by", [-10.0, -0.9, -0.15, 0.15, 0.9, 10.0])
def test_a_wrong_cell_in_a_row_with_an_average_is_noticed(by):
    draw = random.Random(7)
    for key, cells in averaged(EVERY).items():
        row = list(cells.values())
        victim = draw.choice([n for n in row if n.value is not None and n.column != "gain"])
        wrong = replace(victim, printed=f"{victim.value + by * (1 if victim.column != 'avg' else 0.2):.2f}")
        assert off_average([wrong if n is victim else n for n in row]) != off_average(row), (key, victim.column)


def test_gains_are_differences_of_averages():
    def gained(paper, table):
        return [cells for cells in lines(numbers(paper, table)).values() if "gain" in cells]

    off = []
    for cells in gained("whiteningbert", "Table 2"):
        row = cells["avg"].row
        before = float(cell("whiteningbert", "Table 2", row, "avg", "avg L1+last none"))
        difference = cells["avg"].value - before - cells["gain"].value
        assert abs(difference) < ROUNDING
        if abs(difference) > 1e-9:
            off.append(row.split(" (")[0])
    assert len(gained("whiteningbert", "Table 2")) == 24
    assert off == ["SpanBERT-base", "DistilBERT", "SqueezeBERT", "SPECTER", "DeBERTa-large", "ALBERT-large"]
    modules = gained("whitenedcse", "Table 6")
    assert [round(cells["avg"].value - 76.25 - cells["gain"].value, 4) for cells in modules] == [0, 0, 0, 0]


# ---------------------------------------------------------------------------- agreeing with themselves, or listed


def test_both_editions_print_the_same_table_1():
    def edition(name):
        found = numbers("whiteningbert", "Table 1", edition=name)
        return {(*line_of(n)[3:], n.column): (n.printed, n.model, n.unit, n.aggregate) for n in found}

    assert edition("emnlp") == edition("arxiv")
    assert len(edition("emnlp")) == 200


@pytest.mark.parametrize(("model", "last"), [("bert-base", 12), ("roberta-base", 12), ("distilbert", 6), ("labse", 12)])
def test_tables_1_and_2_of_whiteningbert_agree_unwhitened_and_differ_whitened_as_listed(model, last):
    for words in ("none", "whitening fit=task"):
        first, second = (
            printed(n for n in numbers("whiteningbert", table, model=model) if n.setting == f"avg {layers} {words}")
            for table, layers in (("Table 1", f"L1+L{last}"), ("Table 2", "L1+last"))
        )
        second.pop("gain", None)
        assert set(first) == set(second) == {*STS, "avg"}
        if words == "none" or model == "labse":
            apart = {name: (first[name], second[name]) for name in first if first[name] != second[name]}
            assert apart == TABLE_1_AGAINST_2.get((model, words), {})
        if words != "none":
            assert (first["avg"], second["avg"]) == WHITENED_AVERAGES[model]


def test_the_figure_agrees_with_table_1_but_for_the_cell_listed():
    figure = {(n.model, n.setting): n.printed for n in numbers("whiteningbert", "Figure 1")}
    table = {(n.model, n.setting): n.printed for n in numbers("whiteningbert", "Table 1", column="avg")}
    shared = set(figure) & set(table)
    assert len(shared) == 12
    apart = {key: (table[key], figure[key]) for key in shared if table[key] != figure[key]}
    assert apart == TABLE_1_AGAINST_FIGURE_1


def test_papers_that_quote_the_same_source_quote_the_same_numbers():
    def row(paper, label):
        found = printed(n for n in numbers(paper, "Table 1") if n.row.startswith(label))
        return {name: found[name] for name in STS}

    assert row("whiteningbert", "Avg. GloVe") == row("bert-whitening", "Avg. GloVe") == row("whitenedcse", "GloVe")
    assert row("whiteningbert", "IS-BERT") == row("whitenedcse", "IS-BERT")
    assert row("whiteningbert", "BERT-flow (NLI)") == row("bert-whitening", "BERT_base-flow (NLI)")


def test_su_and_whiteningbert_have_the_same_features_under_two_aggregates():
    """STS-B and SICK-R have no subsets; there layers 1 and 12 of BERT-base give one number up to rounding."""
    for task in ("stsb", "sickr"):
        values = [n.value for n in lookup("bert-base", "avg L1+L12 none", task)]
        assert len(values) >= 4
        assert max(values) - min(values) < ROUNDING
    aggregates = {n.aggregate for n in lookup("bert-base", "avg L1+L12 none", "sts12")}
    assert aggregates == {"mean", "wmean"}


def test_arrows_stand_for_the_difference_to_bert_flow():
    marked = [n for n in numbers("bert-whitening") if n.mark]
    assert len(marked) == 2 * 2 * 4 * 7
    for number in marked:
        name, text = re.fullmatch(r"(.+)-whitening(?:-\d+)? (\(.+\))", number.row).groups()
        flow = float(cell("bert-whitening", number.table, f"{name}-flow {text}", number.column))
        assert number.mark == ("up" if number.value > flow else "down"), number
    assert sum("the text reads" in n.note for n in marked) == 7


def test_the_best_of_whitenedcse_is_one_number_in_five_tables():
    best = [max(n.value for n in numbers("whitenedcse", f"Table {i}", column="avg", model="bert-base")) for i in (1, 3)]
    best += [max(n.value for n in numbers("whitenedcse", f"Table {i}", column="avg")) for i in (4, 5, 6)]
    assert best == [78.78] * 5


# ------------------------------------------------------------------------------------------------ known facts


@pytest.mark.parametrize(
    ("model", "setting", "tasks", "aggregate", "values"),
    [
        ("bert-base", "avg L1+L12 none", STS[2:], "mean", "57.72 58.38 61.97 70.28 69.63"),
        ("bert-base", "avg L1+L12 none", STS[2:], "wmean", "57.86 61.97 62.49 70.96 69.76"),
        ("bert-base", "avg L1+L12 whitening k=256 fit=splits", STS[2:], "wmean", "63.89 73.76 69.08 74.59 74.40"),
        ("bert-base", "avg L1+L12 none", ("avg",), "mean", "62.97"),
        ("bert-base", "avg L12 none", ("avg",), "mean", "55.96"),
        ("bert-base", "avg L0+L12 none", ("avg",), "all", "56.70"),
        ("princeton-nlp/unsup-simcse-bert-base-uncased", "cls L12 none", ("avg",), "all", "76.25"),
        ("princeton-nlp/unsup-simcse-bert-large-uncased", "cls last none", ("avg",), "all", "78.41"),
        ("princeton-nlp/unsup-simcse-roberta-base", "cls L12 none", ("avg",), "all", "76.57"),
        ("bert-base", "cls L12 none train=whitenedcse", ("avg",), "all", "78.78"),
        ("bert-large", "cls L24 none train=whitenedcse", ("avg",), "all", "79.97"),
        ("bert-base", "avg L1+L12 whitening k=109 fit=nli", ("sickr",), "", "66.52"),
    ],
)
def test_numbers_known_from_elsewhere_are_found(model, setting, tasks, aggregate, values):
    for task, value in zip(tasks, values.split(), strict=True):
        found = {n.printed for n in lookup(model, setting, task) if n.aggregate == aggregate}
        assert value in found, (task, found)


def test_table_1_of_whiteningbert_mixes_aggregates():
    found = {n.row.split(" (")[0]: (n.aggregate, n.unit) for n in numbers("whiteningbert", "Table 1", column="sts12")}
    assert found["Avg. GloVe"] == found["IS-BERT-NLI"] == ("all", "Spearman x 100")
    assert found["BERT-flow"] == ("wmean", "Spearman x 100")
    assert found["SIF"] == ("mean", "Pearson x 100")
    assert found["token=AVG, layer=L1+L12, whitening=T"] == ("mean", "Spearman x 100")


# ------------------------------------------------------------------------------------------------ looking up


def test_lookup_gives_whitelabs_own_words_their_published_numbers():
    setting = PrintedRow.of("mean", (12, 1), "whitening", fit="task")
    assert str(setting) == "avg L1+L12 whitening fit=task"
    (first, second) = lookup("google-bert/bert-base-uncased", setting, "stsb")
    assert (first.printed, first.table, first.edition) == ("68.68", "Table 1", "emnlp")
    assert (second.printed, second.table) == ("68.72", "Table 2")
    assert first.place == "WhiteningBERT (Huang et al. 2021), Table 1, emnlp edition"


def test_lookup_takes_the_last_layer_by_number_or_by_name():
    by_number = lookup("distilbert", "avg L1+L6 none", "avg")
    assert by_number == lookup("distilbert", "avg L1+last none", "avg")
    assert {n.table for n in by_number} == {"Table 1", "Table 2", "Figure 1"}
    assert lookup("distilbert", "avg L1+L12 none", "avg") == ()
    (found,) = lookup("mpnet", "avg L1+L12 none", "stsb", last=12)
    assert found.printed == "58.58"
    assert lookup("mpnet", "avg L1+L12 none", "stsb") == ()  # its depth is not printed, and not given


def test_fitting_on_the_task_is_fitting_on_all_splits_only_where_there_is_one_split():
    where = "avg L1+L12 whitening k=256 fit={}"
    (target,) = lookup("bert-base", where.format("splits"), "sts12")
    assert lookup("bert-base", where.format("task"), "sts12") == (target,)
    assert [n.printed for n in lookup("bert-base", where.format("splits"), "stsb")] == ["71.43"]
    assert lookup("bert-base", where.format("task"), "stsb") == ()
    assert [n.printed for n in lookup("bert-base", where.format("nli"), "sts12")] == ["61.46"]


def test_lookup_never_gives_another_setting_or_a_row_that_leaves_something_open():
    for model, setting, task in [
        ("bert-base", "avg L1+L12 whitening fit=cross", "stsb"),
        ("bert-base", "avg L1+L12 whitening k=300 fit=splits", "stsb"),
        ("bert-base", "avg L1+L12 none", "demo"),
        ("all-MiniLM-L6-v2", "avg L6 none", "stsb"),
        ("glove", "avg L1 none", "stsb"),
    ]:
        assert lookup(model, setting, task) == ()
    found = lookup("bert-base", "cls last none train=whitenedcse", "avg")
    assert {n.printed for n in found} == {"78.78"}  # not the ablations
    flow = lookup("bert-base", "avg L1+last flow fit=nli", "stsb")
    assert {n.printed for n in flow} == {"58.56"}  # not 68.66, whose layers WhitenedCSE does not name


def test_a_checkpoint_is_not_the_model_it_was_trained_from():
    plain = lookup("bert-base", "cls L12 none", "stsb")
    trained = lookup("princeton-nlp/unsup-simcse-bert-base-uncased", "cls L12 none", "stsb")
    assert {n.printed for n in plain} == {"20.29", "16.50"}
    assert {n.printed for n in trained} == {"76.85"}
    assert lookup("bert-base", "cls L12 none train=simcse", "stsb") == trained


def test_numbers_agree_with_all_that_is_asked():
    assert len(numbers("w-mse")) == 72
    assert {n.table for n in numbers(column="rte")} == {"Table 3"}
    assert {n.model for n in numbers(model="google-bert/bert-base-uncased")} == {"bert-base"}
    assert {PrintedRow.parse(n.setting).training for n in numbers(model="google-bert/bert-base-uncased")} == {""}
    with pytest.raises(ValueError, match="paper='simcse' must be one of whiteningbert, bert-whitening"):
        numbers("simcse")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("mean L1 none", "got 'mean'"),
        ("avg L1+L none", r"got 'L1\+L'"),
        ("avg L1 whitening k=0", "got 'k=0'"),
        ("avg L1 whitening k=", "got 'k='"),
        ("avg L1 whitening depth=3", "got 'depth=3'"),
        ("avg cls L1 none", "must not say its pooling twice"),
    ],
)
def test_a_setting_that_cannot_be_read_is_refused(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        PrintedRow.parse(text)


@pytest.mark.parametrize("setting", ["avg none", "L1 none", "avg L1 whitening", "avg L1"])
def test_a_measured_setting_must_be_complete(setting):
    with pytest.raises(ValueError, match=f"setting='{setting}' must name pooling, layers, whitening and"):
        lookup("bert-base", setting, "stsb")


def test_without_whitening_nothing_is_fitted():
    assert str(PrintedRow.of("cls", (6,), "none", k=8, fit="splits")) == "cls L6 none"
    with pytest.raises(ValueError, match="whitening='pca' must be one of none, whitening, flow"):
        PrintedRow.of("cls", (6,), "pca")


# ------------------------------------------------------------------------------------------------ damaged files

TABLES = "paper,edition,table,title\nw-mse,icml,Table 1,A title\n"
HEADER = "paper,edition,table,section,row,model,setting,column,value,unit,aggregate,mark,note\n"
LINE = "w-mse,icml,Table 1,,BYOL,resnet-18,train=byol,stl10.5nn,88.64,accuracy %,,,\n"


def test_a_folder_of_the_same_layout_is_read(tmp_path):
    (tmp_path / "tables.csv").write_text(TABLES)
    (tmp_path / "w-mse.csv").write_text(HEADER + LINE)
    (found,) = read(tmp_path)
    assert (found.title, found.rows, found.columns) == ("A title", (("", "BYOL"),), ("stl10.5nn",))
    assert found.numbers[0].value == 88.64


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "w-mse.csv: the published tables cannot be read"),
        ("", "w-mse.csv: line 1: expected the columns paper, edition"),
        (HEADER.replace("mark", "arrow") + LINE, "line 1: expected the columns"),
        (HEADER + LINE.replace(",,,", ",,"), "line 2: expected the columns"),
        (HEADER + LINE.replace("88.64", "88.6.4"), "line 2: could not convert string to float: '88.6.4'"),
        (HEADER + LINE.replace("train=byol", "byol"), "line 2: setting='byol' must be made of"),
        (HEADER + LINE + LINE.replace("Table 1", "Table 9"), "line 3: w-mse icml Table 9 is not a table of this file"),
    ],
)
def test_damaged_files_are_named_with_the_line(tmp_path, text, complaint):
    (tmp_path / "tables.csv").write_text(TABLES)
    if text is not None:
        (tmp_path / "w-mse.csv").write_text(text)
    with pytest.raises(DataError, match=re.escape(complaint)):
        read(tmp_path)


def test_every_file_of_the_folder_is_read():
    files = {path.stem for path in published.FOLDER.glob("*.csv")} - {"tables"}
    assert files == set(published.PAPERS) == {table.paper for table in tables()}


def test_every_alias_names_a_model_of_the_tables():
    known = {(number.model, PrintedRow.parse(number.setting).training) for number in EVERY}
    assert set(published.ALIASES.values()) <= known
    assert set(published.DEPTHS) <= {model for model, _ in known}
