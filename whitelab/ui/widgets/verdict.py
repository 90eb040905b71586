"""What a comparison says, in words for the screen."""

from whitelab.base.wording import bare, capitalised, in_percent, p_value
from whitelab.scoring.paired import RESAMPLES, VERDICTS, Standing
from whitelab.statistics.significance import NO_INTERVAL, least_p
from whitelab.whitening import starved_remedy

ICONS = {
    "gain": ":material/trending_up:",
    "loss": ":material/trending_down:",
    "chance": ":material/casino:",
    "unclear": ":material/balance:",
    "same": ":material/equal:",
    "starved": ":material/pause_circle:",
    "undefined": ":material/block:",
}


def bootstrap_p(standing: Standing) -> str:
    """The p-value of the bootstrap, which b resamples cannot show below 2 / (b + 1)."""
    return p_value(standing.difference.p_value, least_p(RESAMPLES))


def tests(standing: Standing) -> str:
    """The p-values of every test there is."""
    found = f"bootstrap\u00a0{bootstrap_p(standing)}"
    if standing.williams is None:
        return found + ", no Williams test for an average of subsets"
    return found + f", Williams\u00a0{p_value(standing.williams.p_value)}"


def short_p(standing: Standing) -> str | None:
    """Both p-values for a cell of a table: `< 0.002, 0.031`."""
    if standing.verdict in ("same", "starved", "undefined"):
        return None
    found = [bootstrap_p(standing)]
    if standing.williams is not None:
        found.append(p_value(standing.williams.p_value))
    return ", ".join(map(bare, found))


def interval(low: float, high: float, sign: str = "", digits: int = 2) -> str:
    """`68.10 to 70.34`."""
    return "undefined" if low != low else f"{low:{sign}.{digits}f} to {high:{sign}.{digits}f}"


def sentence(standing: Standing, label: str, baseline: str, pairs: str, against: str = "") -> str:
    """Whether the difference is real, as a teacher would say it; `against` is what other sentences say against it."""
    found, verdict = standing.difference, standing.verdict
    lead = f"**{VERDICTS[verdict]}{' on the sentences it was fitted on' if against else ''}.**"
    if verdict == "undefined":
        return f"{lead} {standing.score.reason or 'There is no score to compare'}."
    if label == baseline:
        return f"{lead} {capitalised(label)} is compared with itself."
    if verdict == "same":
        return f"{lead} {capitalised(label)} gives every pair the same cosine as {baseline}."
    side = "above" if found.estimate > 0 else "below"
    numbers = f"On the same {pairs} pairs {label} scores {abs(found.estimate):.2f} points {side} {baseline}"
    if verdict == "starved":
        return (
            f"{lead} {numbers}. But a map that keeps as many directions as there are sentences sets all of them "
            "equally far apart, so the score says nothing about meaning, whichever way it went."
        )
    if found.low != found.low:
        return f"{lead} {numbers}. There is no interval: {NO_INTERVAL}."
    numbers += f", 95 % interval {interval(found.low, found.high, '+')}"
    if against:  # its tests are left to the headline: with both, no room on a phone would hold it
        return f"{lead} {numbers}. {against}"
    meaning = {
        "gain": "Most other draws of such pairs would show a gain too.",
        "loss": "Most other draws of such pairs would show a loss too.",
        "chance": "Other pairs of this kind might show no difference, or the opposite one.",
        "unclear": "One test calls it real and the other does not: take it as undecided.",
    }
    return f"{lead} {numbers} ({tests(standing)}). {meaning[verdict]}"


def objected(objection: str) -> str:
    """In a card, what stands against a change (`results.crossed.objection`); empty where nothing does."""
    shown = {"chance": "in doubt", "gain": "a gain", "loss": "a loss"}
    if objection == "unclear":
        return VERDICTS["unclear"].lower()
    return f"{shown[objection]} on new text" if objection else ""


def by_halves(cross: Standing | None, crossed: str) -> str:
    """What halves that show another change (`crossed`) say against one that looks real; empty where they show it."""
    if cross is None or not crossed:
        return ""
    found = cross.difference
    meaning = {
        "chance": "not beyond doubt, so part of it may come from fitting to these very sentences",
        "gain": "the other way round, beyond chance",
        "loss": "the other way round, beyond chance",
    }
    return (
        f"Cross-fitted by halves, it is {found.estimate:+.2f}, 95 % interval "
        f"{interval(found.low, found.high, '+')}: {meaning[crossed]}."
    )


def fitting(task: Standing, cross: Standing, apart: Standing, label: str, raw: Standing, thin: bool = False) -> str:
    """How much of the score of `task` comes from fitting to the very sentences it is scored on.

    `task` and `cross` are against raw, `apart` is `task` against `cross`; of `thin` halves nothing follows.
    """
    gain, part = task.difference.estimate, apart.difference.estimate
    if "undefined" in (task.verdict, cross.verdict, apart.verdict) or raw.score.spearman is None:
        return "Without a score under both scopes there is nothing to compare."
    scores = (
        f"Fitted on the sentences it is scored on, {label} reaches {task.score.spearman:.2f}; cross-fitted, on "
        f"sentences it is not scored on, {cross.score.spearman:.2f}."
    )
    within = f"(95 % interval {interval(apart.difference.low, apart.difference.high, '+')})"
    size = f"{part:+.2f} points {within}"
    if apart.verdict == "same":
        return f"{scores} Nothing is gained by fitting to the test sentences."
    if apart.verdict == "starved":
        return (
            f"{scores} A map of as many directions as it was fitted on sentences, which are all of them here or half, "
            "sets these equally far apart, so the difference says nothing. "
            f"{starved_remedy(task.score.setting.whitening)}"
        )
    if thin:
        return (
            f"{scores} A half has too few sentences for so many directions: what its map loses, the whole one may not. "
            f"{starved_remedy(task.score.setting.whitening)}"
        )
    if apart.verdict == "loss":
        return f"{scores} Fitting to the test sentences costs {-part:.2f} points here {within}."
    if apart.verdict != "gain":
        changes = f"Fitting to the test sentences changes the score by {size}"
        if max(-apart.difference.low, apart.difference.high) > abs(gain):
            return f"{scores} {changes}: too few pairs to say whether any of {gain:+.2f} over raw comes from there."
        proof = "no sign" if part <= 0 else "no proof"
        return f"{scores} {changes}: {proof} that any of it comes from there."
    if gain > 0 and cross.verdict == "loss":
        return (
            f"{scores} So all of the gain of {gain:.2f} points over raw comes from fitting to the test sentences, "
            f"which is worth {size}: without it the score lies {-cross.difference.estimate:.2f} points below raw."
        )
    if gain > 0 and part >= gain:
        return (
            f"{scores} So as much as all of the gain of {gain:.2f} points over raw may come from fitting to the test "
            f"sentences, which is worth {size}."
        )
    if gain > 0:
        return (
            f"{scores} So of the gain of {gain:.2f} points over raw, {part:.2f} ({in_percent(part / gain)}) come from "
            f"fitting to the test sentences {within}."
        )
    return f"{scores} So fitting to the test sentences is worth {size}, and without it the score would be lower still."
