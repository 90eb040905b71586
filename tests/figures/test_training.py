"""The pictures of training runs as data: what is drawn, in which colours, with which words. Nothing is rendered."""

import json

import plotly.graph_objects as go
import pytest
from drawings import DARK, LIGHT, contrast

from whitelab import figures
from whitelab.training.objectives import OBJECTIVES

NAUGHTY = "<img src=x>"
KINDS = {
    "spearman": lambda runs: figures.training_curve(runs, "spearman", "Spearman x 100", from_zero=False, start=True),
    "loss": lambda runs: figures.training_curve(runs, "loss", "Loss"),
    "plane": figures.training_plane,
    "spectrum": figures.training_spectrum,
}


def run(name="simcse-1", objective="simcse:temperature=0.05", seed=0, scores=(50.0, 55.0, 60.0), stop="", **more):
    """A run of four steps that is scored at the start and at every second one."""
    records = []
    for step in range(2 * len(scores) - 1):
        record = {"step": step, "loss": None if step == 0 else 1 / step}
        if step % 2 == 0:
            score = scores[step // 2]
            record |= {"spearman": score, "alignment": 0.3 - 0.01 * step, "uniformity": -2.0 - 0.1 * step}
            record |= {"effective_rank": 10.0 + step, "spectrum": [0.5 - 0.05 * step, 0.2, 0.1, 0.0]}
        records.append(record)
    mapping = {"name": name, "objective": objective, "seed": seed, "steps": 8, "stop": stop, "records": records}
    return mapping | more


def named(figure: go.Figure, start: str):
    return next(trace for trace in figure.data if (trace.name or "").startswith(start))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("runs", [[], [run(records=[])], [run(), run("w-mse-1", "w-mse", stop="collapsed")]])
def test_a_picture_of_runs_says_in_words_what_it_shows_whether_or_not_there_is_anything(kind, runs):
    figure = KINDS[kind](runs)
    assert len(figure.layout.meta["alt"]) > 20
    assert figure.layout.height >= 300
    assert figure.layout.xaxis.title.text
    assert figure.layout.yaxis.title.text
    assert figure.layout.paper_bgcolor is figure.layout.plot_bgcolor is figure.layout.font.color is None
    assert "NaN" not in json.dumps(figure.to_plotly_json(), default=list)


@pytest.mark.parametrize("kind", KINDS)
def test_runs_are_escaped(kind):
    text = json.dumps(KINDS[kind]([run(NAUGHTY, stop=NAUGHTY)]).to_plotly_json()["data"], default=list)
    assert NAUGHTY not in text
    assert "&lt;img" in text


def test_every_registered_objective_has_a_colour_of_its_own():
    assert set(figures.OBJECTIVE_COLOURS) == set(OBJECTIVES)
    assert len(set(figures.OBJECTIVE_COLOURS.values())) == len(OBJECTIVES)


@pytest.mark.parametrize("background", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("name", figures.OBJECTIVE_COLOURS)
def test_objective_colours_stand_out_from_both_backgrounds(name, background):
    assert contrast(figures.OBJECTIVE_COLOURS[name], background) >= 3


@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_decides_the_colour_and_the_seed_the_dash(kind):
    runs = [run("a", seed=0), run("b", seed=1), run("c", "w-mse:size=64", seed=1)]
    figure = KINDS[kind](runs)
    a, b, c = (named(figure, name).line for name in "abc")
    assert a.color == b.color == figures.OBJECTIVE_COLOURS["simcse"]
    assert c.color == figures.OBJECTIVE_COLOURS["w-mse"]
    assert a.dash == "solid" != b.dash
    assert b.dash == c.dash


def test_two_runs_of_one_objective_never_share_a_dash_while_there_are_any_left():
    runs = [run(str(i), seed=0) for i in range(6)]
    assert len(set(figures.run_dashes(runs).values())) == 6
    assert len(figures.run_dashes([*runs, run("7", seed=0)])) == 7


def test_a_curve_holds_the_value_of_every_step_that_has_one():
    loss = named(KINDS["loss"]([run()]), "simcse-1")
    assert list(loss.x) == [1, 2, 3, 4]
    assert list(loss.y) == [1, 1 / 2, 1 / 3, 1 / 4]
    spearman = named(KINDS["spearman"]([run()]), "simcse-1")
    assert list(spearman.x) == [0, 2, 4]
    assert list(spearman.y) == [50.0, 55.0, 60.0]


def test_the_axis_of_steps_has_room_for_the_whole_run_from_the_start():
    assert KINDS["loss"]([run()]).layout.xaxis.range[1] >= 8


def test_the_start_is_ruled_in_once():
    figure = KINDS["spearman"]([run("a"), run("b", scores=(50.0, 40.0))])
    assert [shape.y0 for shape in figure.layout.shapes] == [50.0]
    assert any(note.text == "the start<br>50.00" for note in figure.layout.annotations)
    apart = KINDS["spearman"]([run("a"), run("b", scores=(40.0, 45.0))])
    assert [shape.y0 for shape in apart.layout.shapes] == [40.0, 50.0]
    assert not KINDS["loss"]([run()]).layout.shapes


def test_small_differences_of_a_score_do_not_fill_the_picture():
    low, high = KINDS["spearman"]([run(scores=(60.0, 60.01))]).layout.yaxis.range
    assert high - low >= 5
    assert KINDS["loss"]([run()]).layout.yaxis.rangemode == "tozero"


@pytest.mark.parametrize("kind", ["spearman", "loss", "plane"])
def test_a_run_that_stopped_early_ends_in_a_cross_with_the_reason(kind):
    figure = KINDS[kind]([run(stop="collapsed")])
    cross = next(trace for trace in figure.data if trace.marker.symbol == "x")
    path = named(figure, "simcse-1")
    assert (cross.x[0], cross.y[0]) == (path.x[-1], path.y[-1])
    assert any(note.text == "collapsed<br>at step 4" for note in figure.layout.annotations)
    assert not any(trace.marker.symbol == "x" for trace in KINDS[kind]([run()]).data)


@pytest.mark.parametrize("kind", ["spearman", "loss", "plane"])
def test_the_cross_names_the_step_at_which_the_run_ended_also_where_that_was_measured_last_before_it(kind):
    stopped = run(stop="cancelled")
    stopped["records"].append({"step": 5, "loss": 0.2})
    figure = KINDS[kind]([stopped])
    cross = next(trace for trace in figure.data if trace.marker.symbol == "x")
    assert "cancelled at step 5" in cross.hovertemplate
    assert any(note.text == "cancelled<br>at step 5" for note in figure.layout.annotations)
    assert cross.x[0] == {"spearman": 4, "loss": 5, "plane": pytest.approx(-2.4)}[kind]
    assert kind == "plane" or "cancelled at step 5" in figure.layout.meta["alt"]


def test_a_path_in_the_plane_ends_in_an_arrow():
    figure = figures.training_plane([run()])
    path = named(figure, "simcse-1")
    assert list(path.x) == pytest.approx([-2.0, -2.2, -2.4])
    assert list(path.y) == pytest.approx([0.3, 0.28, 0.26])
    (arrow,) = [note for note in figure.layout.annotations if note.showarrow]
    assert (arrow.ax, arrow.ay, arrow.x, arrow.y) == pytest.approx((-2.2, 0.28, -2.4, 0.26))
    assert not figures.training_plane([run(scores=(50.0,))]).layout.annotations


def test_a_spectrum_stands_on_powers_of_two_beside_that_of_the_start():
    figure = figures.training_spectrum([run()])
    start, now = named(figure, "the start"), named(figure, "simcse-1")
    assert list(start.x) == list(now.x) == [1, 2, 4]  # a share of zero has no place on a log axis
    assert list(start.y) == pytest.approx([50, 20, 10])
    assert list(now.y) == pytest.approx([30, 20, 10])
    assert now.name.endswith("step 4")


def test_runs_from_one_start_share_its_spectrum_and_others_are_told_apart():
    shared = figures.training_spectrum([run("a"), run("b", "w-mse")])
    assert sum("the start" in trace.name for trace in shared.data) == 1
    other = run("b", "w-mse")
    other["records"][0]["spectrum"] = [0.9, 0.05, 0.01, 0.0]
    apart = figures.training_spectrum([run("a"), other])
    assert [trace.name for trace in apart.data if "the start" in trace.name] == ["a, the start", "b, the start"]
