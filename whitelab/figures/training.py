"""Training runs over their steps: what is measured, the path through the plane, the spectrum."""

import html
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from whitelab.figures.style import DASHES, MARK, RULE, finish, is_number, legend

OBJECTIVE_COLOURS = {
    "simcse": "#B8820B",
    "whitenedcse": "#A06FE0",  # the hue of shuffled groups, which it whitens
    "w-mse": "#12A078",  # the hue of Cholesky whitening, which it uses
    "contrastive-whitened": "#0B87C9",
    "byol": "#96703C",
    "mse": "#D1495B",
}


def objective_colour(spec: str) -> str:
    """The hue of an objective, whatever its parameters."""
    return OBJECTIVE_COLOURS[spec.partition(":")[0]]


def run_dashes(runs: Sequence[Mapping]) -> dict[str, str]:
    """A dash for each run by its seed; the next free one where another run of its objective has that already."""
    taken, found = set(), {}
    for run in sorted(runs, key=lambda run: (run["seed"], run["name"])):
        objective, place = run["objective"].partition(":")[0], run["seed"]
        for place in range(run["seed"], run["seed"] + len(DASHES)):  # all taken: the first again
            if (objective, place % len(DASHES)) not in taken:
                break
        taken.add((objective, place % len(DASHES)))
        found[run["name"]] = DASHES[place % len(DASHES)]
    return found


def training_curve(
    runs: Sequence[Mapping], field: str, title: str, from_zero: bool = True, start: bool = False
) -> go.Figure:
    """A measure against the step, one line a run; a cross with the reason where a run stopped early.

    `runs` have name, objective, seed, steps, stop and records, mappings with step and, where it was measured,
    `field`. With `start` the value before training is a dashed line; without `from_zero` the axis spans at least a
    tenth of its highest value, so that small differences look small.
    """
    figure, dashes, known = go.Figure(), run_dashes(runs), []
    for run in runs:
        points = [(one["step"], one[field]) for one in run["records"] if is_number(one.get(field))]
        known += points
        few = len(points) < 3 or field != "loss"
        figure.add_scatter(
            x=[step for step, _ in points],
            y=[value for _, value in points],
            name=_run_label(run),
            mode="lines+markers" if few else "lines",
            line={"color": objective_colour(run["objective"]), "width": 2.5, "dash": dashes[run["name"]]},
            marker={"size": 8},
            cliponaxis=False,
            hovertemplate=f"{_run_label(run)}<br>step %{{x}}: %{{y:.4g}}<extra></extra>",
            legend="legend2",  # the theme of the page colours the first legend unlike any other
            showlegend=True,
        )
        if run["stop"] and points:
            _end(figure, points[-1], run)
    if start:
        firsts = {run["records"][0][field] for run in runs if run["records"] and is_number(_first(run, field))}
        for value in sorted(firsts):
            figure.add_hline(y=value, line={"color": RULE, "dash": "dash", "width": 1.5})
        if len(firsts) == 1:
            at = {"x": 1, "xref": "paper", "y": value, "xanchor": "right", "yanchor": "bottom"}
            figure.add_annotation(text=f"untrained {value:.2f}", showarrow=False, **at)
    longest = max((run["steps"] for run in runs), default=1)
    figure.update_xaxes(title="Step", range=[0, 1.02 * longest])
    figure.update_yaxes(title=title)
    values = [value for _, value in known]
    if from_zero or not values:
        figure.update_yaxes(rangemode="tozero")
    else:
        low, high = min(values), max(values)
        pad = max(0.08 * (high - low), (0.1 * abs(high) - (high - low)) / 2)
        figure.update_yaxes(range=[low - pad, high + pad])
    alt = f"{title} by training step: " + "; ".join(_told(run, field) for run in runs)
    alt = alt if runs else f"{title} by training step: no run"
    return finish(figure, alt, 420 if start else 340, legend2=legend())


def training_plane(runs: Sequence[Mapping]) -> go.Figure:
    """Alignment against uniformity, one path a run from its start (open circle) to now (arrow); lower is better.

    `runs` as for `training_curve`.
    """
    figure, dashes, told = go.Figure(), run_dashes(runs), []
    for run in runs:
        path = [one for one in run["records"] if is_number(one.get("alignment")) and is_number(one.get("uniformity"))]
        colour, x = objective_colour(run["objective"]), [one["uniformity"] for one in path]
        y, last = [one["alignment"] for one in path], len(path) - 1
        figure.add_scatter(
            x=x,
            y=y,
            name=_run_label(run),
            mode="lines+markers",
            line={"color": colour, "width": 2, "dash": dashes[run["name"]]},
            marker={
                "color": colour,
                "opacity": 1,
                "size": [12 if i in (0, last) else 7 for i in range(len(path))],
                "symbol": ["circle-open" if i == 0 else "circle" for i in range(len(path))],
                "line": {"width": 2, "color": colour},
            },
            cliponaxis=False,
            customdata=[[one["step"], _score_text(one.get("spearman"))] for one in path],
            hovertemplate=f"{_run_label(run)}, step %{{customdata[0]}}<br>uniformity %{{x:.3f}}<br>alignment %{{y:.3f}}"
            "<br>Spearman x 100: %{customdata[1]}<extra></extra>",
            legend="legend2",
            showlegend=True,
        )
        if last > 0:
            tail = {"ax": x[-2], "ay": y[-2], "axref": "x", "ayref": "y", "standoff": 5}
            figure.add_annotation(
                x=x[-1], y=y[-1], showarrow=True, arrowhead=3, arrowsize=1.3, arrowwidth=2, arrowcolor=colour, **tail
            )
        if run["stop"] and path:
            _end(figure, (x[-1], y[-1]), run)
        if path:
            told.append(f"{run['name']} from ({x[0]:.3f}, {y[0]:.3f}) to ({x[-1]:.3f}, {y[-1]:.3f})")
    figure.update_xaxes(title="Uniformity loss (lower: more spread out)")
    figure.update_yaxes(title="Alignment loss (lower: similar pairs closer)", rangemode="tozero")
    alt = "Paths of training in the plane of uniformity and alignment: " + ("; ".join(told) or "nothing measured yet")
    return finish(figure, alt, 420, legend2=legend())


def training_spectrum(runs: Sequence[Mapping]) -> go.Figure:
    """Share of the variance along the 1st, 2nd, 4th, ... principal direction: at the start (grey), and at the last
    scored step of each run. `runs` as for `training_curve`, their records with `spectrum`."""
    figure, dashes, told = go.Figure(), run_dashes(runs), []
    starts = {}
    for run in runs:
        scored = [one for one in run["records"] if one.get("spectrum")]
        if scored and scored[0]["step"] == 0:
            starts.setdefault(tuple(scored[0]["spectrum"]), run)
    for number, (shares, run) in enumerate(starts.items()):
        named = "untrained start" if len(starts) == 1 else f"{run['name']}, untrained"
        _shares(figure, shares, html.escape(named), "#8A8A8A", DASHES[(number + 1) % len(DASHES)])
    for run in runs:
        scored = [one for one in run["records"] if one.get("spectrum") and one["step"]]
        if scored:
            shares, step = scored[-1]["spectrum"], scored[-1]["step"]
            colour, label = objective_colour(run["objective"]), f"{_run_label(run)}, step {step}"
            _shares(figure, shares, label, colour, dashes[run["name"]])
            told.append(f"{run['name']} at step {step} has {100 * shares[0]:.2g} % along its first direction")
    longest = max((len(one.get("spectrum") or ()) for run in runs for one in run["records"]), default=0)
    places = [2**i for i in range(longest)]
    figure.update_xaxes(title="Principal direction, largest first", type="log", tickvals=places, ticktext=places)
    figure.update_yaxes(title="Share of variance (%)", type="log", dtick=1, exponentformat="power")
    alt = "Spectrum before and after training: " + ("; ".join(told) or "nothing measured yet")
    return finish(figure, alt, 340, legend2=legend())


def _shares(figure: go.Figure, shares: Sequence[float], label: str, colour: str, dash: str) -> None:
    places = [(2**i, 100 * share) for i, share in enumerate(shares) if share > 1e-12]
    figure.add_scatter(
        x=[place for place, _ in places],
        y=[share for _, share in places],
        name=label,
        mode="lines+markers",
        line={"color": colour, "width": 2.5, "dash": dash},
        marker={"size": 7},
        hovertemplate=f"{label}<br>direction %{{x}}: %{{y:.3g}} % of the variance<extra></extra>",
        legend="legend2",
        showlegend=True,
    )


def _run_label(run: Mapping) -> str:
    return html.escape(f"{run['name']}, seed {run['seed']}")


def _first(run: Mapping, field: str) -> float | None:
    return run["records"][0].get(field) if run["records"] and run["records"][0]["step"] == 0 else None


def _told(run: Mapping, field: str) -> str:
    """A run in the words of an alternative text."""
    points = [(one["step"], one[field]) for one in run["records"] if is_number(one.get(field))]
    if not points:
        return f"{run['name']} has no value yet"
    (first, before), (last, after) = points[0], points[-1]
    ended = f", then {run['stop']}" if run["stop"] else ""
    return f"{run['name']} from {before:.3g} at step {first} to {after:.3g} at step {last}{ended}"


def _score_text(value: float | None) -> str:
    return f"{value:.2f}" if is_number(value) else "undefined"


def _end(figure: go.Figure, point: tuple[float | int, float], run: Mapping) -> None:
    """Where a run stopped early, and why."""
    figure.add_scatter(
        x=[point[0]],
        y=[point[1]],
        mode="markers",
        marker={"symbol": "x", "size": 12, "color": MARK},
        cliponaxis=False,
        hovertemplate=f"{_run_label(run)}: {html.escape(run['stop'])}<extra></extra>",
        showlegend=False,
    )
    where = {"x": point[0], "y": point[1], "xanchor": "left", "yanchor": "bottom", "xshift": 6, "yshift": 6}
    figure.add_annotation(text=html.escape(run["stop"]), showarrow=False, font={"color": MARK}, **where)
