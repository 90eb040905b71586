"""`layers`: every pair, every subset, on one task or several."""

import pytest
from tiny import write_pairs


@pytest.mark.parametrize("whitening", ["none", "pca"])
def test_layers_has_every_pair_and_best_is_the_highest(document, options, whitening):
    record = document("layers", *options, "--whitening", whitening)
    assert [cell["layers"] for cell in record["cells"]] == [[i, j] for i in range(4) for j in range(i, 4)]
    top = max(record["cells"], key=lambda cell: cell["spearman"])
    assert record["best"]["spearman"] == top["spearman"]
    assert record["best"]["layers"] == top["layers"]
    for cell in record["cells"][1::4]:
        names = ",".join(map(str, dict.fromkeys(cell["layers"])))
        alone = document("score", *options, "--layers", names, "--whitening", whitening)
        assert cell["spearman"] == pytest.approx(alone["spearman"], abs=1e-6)


def test_without_size_the_layers_command_is_the_pairs(document, options):
    assert set(document("layers", *options)) == {"cells", "best", "pairs", "protocol"}


def test_every_size_scores_every_subset_and_the_best_is_its_own_score(document, options):
    record = document("layers", *options, "--size", "all", "--top", "20")
    assert (record["scored"], record["exact"], len(record["top"])) == (15, True, 15)
    assert record["strategy"] == record["protocol"]["layers"] == "every subset of 1 to 4 layers"
    assert record["seconds"] > 0
    assert list(record["best_by_size"]) == ["1", "2", "3", "4"]
    assert "tasks" not in record
    for size, best in record["best_by_size"].items():
        assert len(best["layers"]) == int(size)
        alone = document("score", *options, "--layers", ",".join(map(str, best["layers"])))
        assert best["spearman"] == pytest.approx(alone["spearman"], abs=1e-6)
        same = [one["spearman"] for one in record["top"] if len(one["layers"]) == int(size)]
        assert best["spearman"] == max(same)
    scores = [one["spearman"] for one in record["top"]]
    assert scores == sorted(scores, reverse=True)
    assert record["layer_counts"] == [sum(layer in one["layers"] for one in record["top"]) for layer in range(4)]


@pytest.mark.parametrize(
    ("size", "sizes", "scored"), [("1", [1], 4), ("2", [2], 6), ("1-3", [1, 2, 3], 14), ("1,3-4", [1, 3, 4], 9)]
)
def test_sizes_are_a_number_a_range_or_a_list(document, options, size, sizes, scored):
    record = document("layers", *options, "--size", size, "--whitening", "pca", "--k", "5")
    assert [int(one) for one in record["best_by_size"]] == sizes
    assert record["scored"] == scored
    assert (record["protocol"]["whitening"], record["protocol"]["k"]) == ("pca", 5)


def test_top_bounds_the_list_and_not_the_search(document, options):
    few, many = (document("layers", *options, "--size", "all", "--top", top) for top in (2, 9))
    assert few["top"] == many["top"][:2]
    assert few["scored"] == many["scored"]


@pytest.fixture(scope="module")
def three_tasks(options, tmp_path_factory):
    """What the analyses need on three tasks with different pairs."""
    root = tmp_path_factory.mktemp("three")
    for i, name in enumerate(("a", "b", "c")):
        write_pairs(root / f"{name}.csv", 30, 30 * i)
    return [*options, "--data", root]


@pytest.mark.parametrize(("named", "names"), [("all", ["a", "b", "c"]), ("c, a", ["c", "a"])])
def test_several_tasks_are_averaged_and_each_has_its_own_ranking(document, three_tasks, named, names):
    record = document("layers", *three_tasks, "--task", named, "--size", "1-2")
    assert list(record["tasks"]) == record["protocol"]["task"] == names
    own = {name: document("layers", *three_tasks, "--task", name, "--size", "1-2", "--top", 99) for name in names}
    for one in record["top"]:
        scores = {n: next(s["spearman"] for s in own[n]["top"] if s["layers"] == one["layers"]) for n in names}
        assert one["tasks"] == pytest.approx(scores, abs=1e-9)
        assert one["spearman"] == pytest.approx(sum(scores.values()) / len(names), abs=1e-8)
    for name in names:
        assert record["tasks"][name]["best_by_size"] == own[name]["best_by_size"]
    assert len({one["best_by_size"]["1"]["spearman"] for one in own.values()}) == len(names)


def test_the_search_is_readable_without_json(run, three_tasks):
    status, out, _ = run("layers", *three_tasks, "--task", "all", "--size", "all", "--top", "3")
    assert status == 0
    assert "scored 15 subsets in" in out
    assert "averaged over a, b, c" in out
    assert "every subset of 1 to 4 layers" in out
    assert "0+1+2+3" in out


@pytest.mark.parametrize("file", ["constant.csv", "one.csv"])
def test_undefined_scores_do_not_stop_the_searches(document, run, options, place, file):
    argv = [*options, "--data", place / file]
    record = document("layers", *argv, "--size", "all")
    assert (record["scored"], record["top"], record["best_by_size"]) == (15, [], {})
    assert "not defined" in run("layers", *argv, "--size", "all")[1]
    curves = document("kcurve", *argv, "--layers", "each")["curves"]
    assert {one["best_k"] for one in curves} == {None}
    assert "undefined" in run("kcurve", *argv, "--layers", "each")[1]
