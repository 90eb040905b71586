"""Training runs over their steps: what is measured, the path through the plane, the spectrum."""

import html
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from whitelab.base.wording import spaced
from whitelab.figures import heights
from whitelab.figures.drawing import Drawing
from whitelab.figures.marks import NAMED, add_line, add_marks, level, rule, share_axis
from whitelab.figures.panels import finish, in_words
from whitelab.figures.planes import loss_plane
from whitelab.figures.style import DASHES, MARK, SCORE, is_number, variant_colour

OBJECTIVE_COLOURS = {
    "simcse": "#B8820B",
    "whitenedcse": "#A06FE0",  # the hue of shuffled groups, which it whitens
    "w-mse": "#12A078",  # the hue of Cholesky whitening, which it uses
    "contrastive-whitened": "#0B87C9",
    "byol": "#96703C",
    "barlow": "#5B7F1B",
    "vicreg": "#B0528F",
    "mse": "#D1495B",
}


def objective_colour(spec: str) -> str:
    """The hue of an objective, whatever its parameters."""
    return OBJECTIVE_COLOURS[spec.partition(":")[0]]


def run_dashes(runs: Sequence[Mapping]) -> dict[str, str]:
    """A dash for each run by its seed; the next free one where another run of its objective has that already."""
    taken, dashes = set(), {}
    for run in sorted(runs, key=lambda run: (run["seed"], run["name"])):
        objective, place = run["objective"].partition(":")[0], run["seed"]
        for place in range(run["seed"], run["seed"] + len(DASHES)):  # all taken: the first again
            if (objective, place % len(DASHES)) not in taken:
                break
        taken.add((objective, place % len(DASHES)))
        dashes[run["name"]] = DASHES[place % len(DASHES)]
    return dashes


def training_curve(
    runs: Sequence[Mapping], field: str, title: str, from_zero: bool = True, start: bool = False
) -> go.Figure:
    """A measure against the step, one line a run; a cross with the reason where a run stopped early.

    `runs` have name, objective, seed, steps, stop and records, mappings with step and, where it was measured,
    `field`. With `start` the value before training is a dashed line; without `from_zero` the axis spans at least a
    tenth of its highest value, so that small differences look small.
    """
    figure, dashes, values = Drawing(), run_dashes(runs), []
    for run in runs:
        points = _measured(run, field)
        steps, levels = [step for step, _ in points], [value for _, value in points]
        values += levels
        mode = "lines+markers" if len(points) < 3 or field != "loss" else "lines"
        more = {"mode": mode, "marker": {"size": 8}, "cliponaxis": False, "showlegend": True}
        add_line(figure, steps, levels, _name(run), _line(run, dashes), "step %{x:,}: %{y:.4g}", **more)
        if run["stop"] and points:
            _end(figure, points[-1], run)
    starts = {points[0][1] for run in runs if (points := _measured(run, field)) and points[0][0] == 0}
    for value in sorted(starts) if start else ():
        level(figure, value, "the start" if len(starts) == 1 else "", rule(dash="dash"))
    figure.update_xaxes(title="Step", range=[0, 1.02 * max((run["steps"] for run in runs), default=1)])
    figure.update_yaxes(title=title, rangemode="tozero")
    if values and not from_zero:
        low, high = min(values), max(values)
        pad = max(0.08 * (high - low), (0.1 * abs(high) - (high - low)) / 2)
        figure.update_yaxes(range=[low - pad, high + pad])
    alt = in_words(f"{title} by training step", [_in_words(run, field) for run in runs], "no run")
    return finish(
        figure,
        alt,
        heights.TRAINING if start else heights.LOW,
        right=NAMED + 8 if start and len(starts) == 1 else 10,
    )


def training_plane(runs: Sequence[Mapping]) -> go.Figure:
    """Alignment against uniformity, one path a run from its start (open circle) to now (arrow); lower is better.

    `runs` as for `training_curve`.
    """
    figure, dashes, words = Drawing(), run_dashes(runs), []
    loss_plane(figure)
    for run in runs:
        path = [row for row in run["records"] if is_number(row.get("alignment")) and is_number(row.get("uniformity"))]
        x, y, last = [row["uniformity"] for row in path], [row["alignment"] for row in path], len(path) - 1
        scores = [row.get("spearman") for row in path]
        colour = objective_colour(run["objective"])
        marker = {
            "color": colour,
            "opacity": 1,
            "size": [12 if i in (0, last) else 7 for i in range(len(path))],
            "symbol": ["circle-open" if i == 0 else "circle" for i in range(len(path))],
            "line": {"width": 2, "color": colour},
        }
        texts = [f"{score:.2f}" if is_number(score) else "undefined" for score in scores]
        add_line(
            figure,
            x,
            y,
            _name(run),
            _line(run, dashes) | {"width": 2},
            f"step %{{customdata[0]}}<br>uniformity %{{x:.3f}}<br>alignment %{{y:.3f}}<br>{SCORE}: %{{customdata[1]}}",
            mode="lines+markers",
            marker=marker,
            cliponaxis=False,
            customdata=[[row["step"], text] for row, text in zip(path, texts, strict=True)],
            showlegend=True,
        )
        if last > 0:
            tail = {"ax": x[-2], "ay": y[-2], "axref": "x", "ayref": "y", "standoff": 5}
            head = {"showarrow": True, "arrowhead": 3, "arrowsize": 1.3, "arrowwidth": 2, "arrowcolor": colour}
            figure.add_annotation(x=x[-1], y=y[-1], **tail, **head)
        if run["stop"] and path:
            _end(figure, (x[-1], y[-1]), run)
        if path:
            words.append(f"{run['name']} from ({x[0]:.3f}, {y[0]:.3f}) to ({x[-1]:.3f}, {y[-1]:.3f})")
    alt = in_words("Paths of training in the plane of uniformity and alignment", words, "nothing measured yet")
    return finish(figure, alt, heights.TRAINING)


def training_spectrum(runs: Sequence[Mapping]) -> go.Figure:
    """Share of the variance along the 1st, 2nd, 4th, ... principal direction: at the start (grey), and at the last
    scored step of each run. `runs` as for `training_curve`, their records with `spectrum`."""
    figure, dashes, words, starts = Drawing(), run_dashes(runs), [], {}
    scored = {run["name"]: [row for row in run["records"] if row.get("spectrum")] for run in runs}
    for run in runs:
        for row in scored[run["name"]][:1]:
            if row["step"] == 0:
                starts.setdefault(tuple(row["spectrum"]), run["name"])
    for number, (shares, name) in enumerate(starts.items(), 1):
        label = "the start" if len(starts) == 1 else f"{name}, the start"
        line = {"color": variant_colour("none"), "width": 2.5, "dash": DASHES[number % len(DASHES)]}
        _add_spectrum(figure, shares, label, line)
    for run in runs:
        for row in scored[run["name"]][-1:]:
            if row["step"]:
                _add_spectrum(figure, row["spectrum"], f"{_name(run)}, step {row['step']}", _line(run, dashes))
                share = 100 * row["spectrum"][0]
                words.append(f"{run['name']} at step {row['step']} has {share:.2g} % along its first direction")
    longest = max((len(row["spectrum"]) for rows in scored.values() for row in rows), default=0)
    places = [2**i for i in range(longest)]
    figure.update_xaxes(title="Direction, largest first", type="log", tickvals=places, ticktext=places)
    share_axis(figure)
    return finish(figure, in_words("Spectrum before and after training", words, "nothing measured yet"), heights.LOW)


def _add_spectrum(figure: Drawing, shares: Sequence[float], label: str, line: dict) -> None:
    places = [(2**i, 100 * share) for i, share in enumerate(shares) if share > 1e-12]
    x, y = [place for place, _ in places], [share for _, share in places]
    more = {"mode": "lines+markers", "marker": {"size": 7}, "showlegend": True}
    add_line(figure, x, y, label, line, "direction %{x}: %{y:.3g} % of the variance", **more)


def _name(run: Mapping) -> str:
    return f"{run['name']}, seed {run['seed']}"


def _line(run: Mapping, dashes: Mapping[str, str]) -> dict:
    return {"color": objective_colour(run["objective"]), "width": 2.5, "dash": dashes[run["name"]]}


def _measured(run: Mapping, field: str) -> list[tuple[int, float]]:
    """The steps at which a run has the field, and its values."""
    return [(row["step"], row[field]) for row in run["records"] if is_number(row.get(field))]


def _in_words(run: Mapping, field: str) -> str:
    """A run in the words of an alternative text."""
    points = _measured(run, field)
    if not points:
        return f"{run['name']} has no value yet"
    (first, before), (last, after) = points[0], points[-1]
    ended = f", then {_stopped(run)}" if run["stop"] else ""
    return f"{run['name']} from {before:.3g} at step {spaced(first)} to {after:.3g} at step {spaced(last)}{ended}"


def _end(figure: Drawing, point: tuple[float | int, float], run: Mapping) -> None:
    """A cross at the last point that a run has, with why and at which step it stopped early: often later than there."""
    reason = html.escape(_stopped(run))
    add_marks(figure, [point], "x", f"{html.escape(_name(run))}: {reason}", 12)
    where = {"x": point[0], "y": point[1], "xanchor": "left", "yanchor": "bottom", "xshift": 6, "yshift": 6}
    where |= {"align": "left", "text": reason.replace(" at step ", "<br>at step ")}  # short, as it may be at the edge
    figure.add_annotation(showarrow=False, font={"color": MARK}, **where)


def _stopped(run: Mapping) -> str:
    """Why a run stopped early, and after which step."""
    return f"{run['stop']} at step {spaced(run['records'][-1]['step'])}"
