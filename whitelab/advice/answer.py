"""Evidence -> three sentences: what to do, why, and what to know beside it."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist

from whitelab.advice.evidence import Evidence, Option
from whitelab.base.records import without_nan
from whitelab.base.wording import capitalised, inside, layers_in_words, spaced
from whitelab.retrieval.compression import Code
from whitelab.scoring.calibration import Threshold
from whitelab.scoring.paired import LEVEL
from whitelab.scoring.setting import Setting
from whitelab.statistics.significance import FEW, Difference, holm
from whitelab.whitening import label

STEP = 1.0  # points: less is not worth a change
_WIDE = NormalDist().inv_cdf(1 - LEVEL / 2)  # standard errors to either side of a 95 % interval's middle
_ADJECTIVES = ("none", "center", "standardize")  # variants whose names say how vectors are


@dataclass(frozen=True)
class Advice:
    """What to do, in three `sentences`; `setting` is None where the data cannot decide.

    `needed` is how many items would decide where these cannot, if the differences stay what they are; None also where
    they are too few to say, and of scores that are means over runs, whose part of an interval more items do not narrow.
    `code` says how the vectors are kept, `threshold` which cosine calls two texts the same, where that is the purpose:
    under `setting`, or under the baseline's where the data cannot decide.
    """

    purpose: str
    setting: Setting | None
    sentences: tuple[str, str, str]
    needed: int | None
    evidence: Evidence | None
    code: Code = Code()
    threshold: Threshold | None = None

    @property
    def cosine(self) -> str:
        """From which cosine on two texts are called the same and how often that is wrong; empty where not asked."""
        cut = self.threshold
        if cut is None or self.evidence is None:
            return ""
        found, low, high = (f"{100 * share:.1f}" for share in (cut.recall, cut.recall_low, cut.recall_high))
        return (
            f"Of the {named(self.setting or self.evidence.baseline.setting)}, a cosine above {cut.cosine:.4f} (95 %: "
            f"{cut.low:.4f} to {cut.high:.4f}) calls two texts the same: {found} % of the pairs that are ({low} "
            f"to {high}), and {100 * cut.false_positives:.1f} % of those that are not."
        )

    @property
    def keeping(self) -> str:
        """How vectors are kept under `code`; empty where they are kept as they are, in float32."""
        if self.code == Code() or self.evidence is None:
            return ""
        advised = self.setting, self.code
        dim = next(option.dim for option in self.evidence.options if (option.setting, option.code) == advised)
        of_search = self.evidence.unit == "queries"
        alone = f"`faiss.IndexScalarQuantizer({dim}, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)`"
        return (
            f"To keep them so: `Coder(Code.parse('{self.code}'), vectors)` of whitelab.retrieval.compression, trained "
            "on such vectors brought to length 1"
            + (f", or {alone}, trained on the same" if self.code == Code("int8") else "")
            + ". Queries stay in float32."
            + " Documents of equal cosine are ranked by id here; an index may rank them otherwise." * of_search
        )

    @property
    def text(self) -> str:
        """All that it says, a line each, down to what judged it."""
        judged = self.evidence.line if self.evidence else ""
        return "\n".join(line for line in (*self.sentences, self.cosine, self.keeping, judged) if line)

    @property
    def decided(self) -> bool:
        """Whether the data decides."""
        return self.setting is not None

    def as_dict(self) -> dict:
        """The JSON document of `python -m whitelab advise`."""
        chosen = None if self.setting is None else str(self.setting)
        record = {"purpose": self.purpose, "decided": self.decided, "setting": chosen, "needed": self.needed}
        record |= {"code": str(self.code), "threshold": self.threshold and without_nan(asdict(self.threshold))}
        return record | {"sentences": list(self.sentences)} | (self.evidence.as_dict() if self.evidence else {})


def answer(evidence: Evidence, purpose: str) -> Advice:
    """The advice that `evidence` supports.

    For `store`, the shortest vectors that are less than a point behind the model as it comes, and behind the best where
    any shorter ones are. Else the best of the options whose gain over the baseline is real. Both hold after Holm's
    correction for all that might have been chosen so. The baseline where no option can be a point better; and nothing
    where that is still open, or where there are fewer than `FEW` items.
    """
    if evidence.count < FEW:
        return _too_few(evidence, purpose)
    return _shortest(evidence) if purpose == "store" else _best(evidence, purpose)


def named(setting: Setting) -> str:
    """`vectors of layers 1 + 6 with PCA whitening, cut to k = 96`, `raw vectors of layer 6`."""
    what, where = inside(label(setting.whitening)), f"vectors of {layers_in_words(setting.layers)}"
    text = f"{what} {where}" if setting.whitening in _ADJECTIVES else f"{where} with {what}"
    return text + (f", cut to k = {setting.k}" if setting.k else "")


def kept_as(option: Option) -> str:
    """`named`, and how it is stored where that is not float32: `raw vectors of layer 6 as int8`."""
    return named(option.setting) + ("" if option.code == Code() else f", kept as {option.code.label}")


def _best(evidence: Evidence, purpose: str) -> Advice:
    raw, others = evidence.baseline, evidence.options[1:]
    gains = [one for one in others if one.verdict == "gain"]
    if gains:
        best = max(gains, key=lambda option: option.score)
        return Advice(purpose, best.setting, _gain(evidence, best), None, evidence)
    reach = max(others, key=lambda option: option.difference.high)
    if reach.difference.high < STEP:
        losses = sum(one.verdict == "loss" for one in others)
        high = reach.difference.high
        most = f"more than {math.ceil(10 * high) / 10:.1f} points" if high > 0 else "anything"
        sentences = (
            f"Use the {named(raw.setting)}, as the model gives them: nothing that was tried is better by a point.",
            f"{_scored(evidence, raw)} None of {len(others)} others gains {most}, even at the upper end of its "
            "interval.",
            f"{losses} of them lose, and not by chance." if losses else "None of them loses beyond chance either.",
        )
        return Advice(purpose, raw.setting, sentences, None, evidence)
    best = max((one for one in others if one.difference.high >= STEP), key=lambda option: option.score)
    found = best.difference.estimate
    needed = None if evidence.runs else _deciding(evidence, [one.difference for one in others])
    if needed is None:
        then = (
            f"More {evidence.unit} would narrow the intervals; how many would decide cannot be said, as these hold how "
            "far runs differ, too."
        )
    else:
        more = f"About {spaced(needed)}" if needed > 1.1 * evidence.count else "It is close: a few more"
        ends = "decide" if found > 0 else "rule that out"
        then = f"{more} {evidence.unit} would {ends}, if the differences stay what they are."
    if found > 0:
        sentences = (
            f"These {spaced(evidence.count)} {evidence.unit} cannot decide; until more are there, keep the "
            f"{named(raw.setting)}.",
            f"{capitalised(named(best.setting))} score {best.score:.2f} in {evidence.metric} against {raw.score:.2f} "
            f"({_interval(best)} by itself{_mean_of_runs(evidence)}), which could be chance after {len(others)} "
            "comparisons.",
            then,
        )
    else:
        sentences = (
            f"Keep the {named(raw.setting)}: nothing that was tried scores higher, but these {spaced(evidence.count)} "
            f"{evidence.unit} are too few to rule out that something is better by {STEP:g} point.",
            f"{_scored(evidence, raw)} Of {len(others)} others the best that might be, {named(best.setting)}, score "
            f"{best.score:.2f} ({_interval(best)}).",
            then,
        )
    return Advice(purpose, None, sentences, needed, evidence)


def _too_few(evidence: Evidence, purpose: str) -> Advice:
    raw = evidence.baseline
    sentences = (
        f"{spaced(evidence.count)} {evidence.unit} are too few to decide; until more are there, keep the "
        f"{named(raw.setting)}.",
        _scored(evidence, raw),
        f"Below {FEW} {evidence.unit} the intervals are not to be trusted either: what was not drawn is missing there.",
    )
    return Advice(purpose, None, sentences, None, evidence)


def _gain(evidence: Evidence, best: Option) -> tuple[str, str, str]:
    raw = evidence.baseline
    why = _scored(evidence, best) + f" The {named(raw.setting)} score {raw.score:.2f}: {_interval(best)}"
    if not math.isnan(evidence.honest_gain):
        why += f", and {evidence.honest_gain:+.2f} where the choice and the score are made on different halves"
    shorter = [one for one in evidence.options if one.dim < best.dim and one.behind.high >= 0]
    same = [one for one in evidence.options if one.setting != best.setting and one.behind.high >= 0]
    if shorter:
        small = min(shorter, key=lambda option: (option.dim, -option.score))
        beside = (
            f"{capitalised(named(small.setting))} score {small.score:.2f}, which these {evidence.unit} do not tell "
            f"from it, with {small.dim} numbers a vector in place of {best.dim}."
        )
    elif same:
        near = max(same, key=lambda option: option.score)
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        beside = f"{capitalised(named(near.setting))} ({near.score:.2f}){more} are not told from it."
    else:
        beside = "Every other option that was tried is behind it, by its whole 95 % interval."
    return f"Use {named(best.setting)}.", f"{why}.", beside


def _shortest(evidence: Evidence) -> Advice:
    best, raw = evidence.best, evidence.baseline
    short = [one for one in evidence.options if one.size < raw.size]
    as_raw, as_best = (_within_a_step([getattr(one, name) for one in short]) for name in ("difference", "behind"))
    near_raw = [one for one, sure in zip(short, as_raw, strict=True) if sure]
    if not near_raw:
        return _none_shorter(evidence)
    near = [one for one, *sure in zip(short, as_raw, as_best, strict=True) if all(sure)]
    found = min(near or near_raw, key=lambda option: (option.size, -option.score))
    passed = _passed_over(short, found, ("difference", "behind") if near else ("difference",))
    if not near:
        return _as_near_as_raw(evidence, found, passed)
    against, lead = (raw.setting, found.difference) if found is best else (None, found.behind)
    beside = f"The best, {kept_as(best)}, scores {best.score:.2f}, the {named(raw.setting)} {raw.score:.2f}."
    if best is found or best is raw:
        beside = f"The {named(raw.setting)}{', the best,' if best is raw else ''} score {raw.score:.2f}."
    sentences = (
        _shorter(evidence, found),
        f"{_scored(evidence, found)} {beside}",
        (f"Against the {named(against)} it is " if against else "Against the best it loses less than a point: ")
        + f"{lead.estimate:+.2f} ({lead.low:+.2f} to {lead.high:+.2f}).{passed}",
    )
    return Advice("store", found.setting, sentences, None, evidence, found.code)


def _shorter(evidence: Evidence, found: Option) -> str:
    whole = spaced(evidence.baseline.size)
    return f"Use {kept_as(found)}: {spaced(found.size)} bytes a vector in place of {whole}."


def _passed_over(short: list[Option], found: Option, gaps: tuple[str, ...]) -> str:
    """Of those still shorter the shortest that its own intervals would admit, and why they do not suffice."""
    alone = [one for one in short if one.size < found.size and all(getattr(one, gap).low > -STEP for gap in gaps)]
    if not alone:
        return ""
    small = min(alone, key=lambda option: (option.size, -option.score))
    return (
        f" {capitalised(kept_as(small))}, {spaced(small.size)} bytes, seem to do as well, but among the {len(short)} "
        "shorter ones that were tried one may by luck."
    )


def _as_near_as_raw(evidence: Evidence, found: Option, passed: str) -> Advice:
    """The shortest that stays within a point of the model as it comes, where that cannot be said of the best."""
    best, raw, lag = evidence.best, evidence.baseline, found.behind
    sentences = (
        _shorter(evidence, found),
        f"{_scored(evidence, found)} The {named(raw.setting)} score {raw.score:.2f}: {_interval(found)}.",
        f"Against the best, {kept_as(best)}, with {best.score:.2f}, it is {lag.estimate:+.2f} ({lag.low:+.2f} to "
        f"{lag.high:+.2f}), so more than a point may be left there.{passed}",
    )
    return Advice("store", found.setting, sentences, None, evidence, found.code)


def _none_shorter(evidence: Evidence) -> Advice:
    """No shorter vector is known to be near the model as it comes; whether one may be is open where one might be."""
    raw, best = evidence.baseline, evidence.best
    short = [one for one in evidence.options if one.size < raw.size]
    likely = max(short, key=lambda option: option.difference.estimate, default=None)
    needed = None
    if likely is not None and likely.difference.estimate > -STEP:
        needed = _enough(evidence, likely.difference, (STEP + likely.difference.estimate) / _stricter(len(short)))
        more = (
            f"{capitalised(kept_as(likely))}, score {likely.score:.2f} ({_interval(likely)}); if it stays so, about "
            f"{spaced(needed)} {evidence.unit} would show that they will do."
        )
    else:
        more = f"All {len(short)} shorter ones are behind them by a point or more."
    sentences = (
        f"Keep all {spaced(raw.size)} bytes a vector: nothing shorter is known to stay within a point of the "
        f"{named(raw.setting)}.",
        _scored(evidence, raw) + ("" if best is raw else f" The best, {kept_as(best)}, scores {best.score:.2f}."),
        more,
    )
    return Advice("store", None if needed else best.setting, sentences, needed, evidence)


def _within_a_step(differences: Sequence[Difference]) -> list[bool]:
    """Which are less than `STEP` below 0 beyond doubt, after Holm's correction: of one alone, if its interval is.

    The p-value of each is that of a normal error as wide as its interval is below the estimate.
    """

    def p_value(one: Difference) -> float:
        below, margin = one.estimate - one.low, one.estimate + STEP
        return 2 * NormalDist().cdf(-_WIDE * margin / below) if below > 0 < margin else float(margin <= 0)

    return [p < LEVEL for p in holm([p_value(one) for one in differences])]


def _deciding(evidence: Evidence, differences: list[Difference]) -> int:
    """Items at which the gain of one option that may be a point better is real, or all of those are ruled out."""
    open_, stricter = [one for one in differences if one.high >= STEP], _stricter(len(differences))
    gain = [_enough(evidence, one, one.estimate / stricter) for one in open_ if one.estimate > 0]
    if all(one.estimate < STEP for one in open_):
        gain.append(max(_enough(evidence, one, STEP - one.estimate) for one in open_))
    return min(gain)


def _enough(evidence: Evidence, difference: Difference, margin: float) -> int:
    """Items, more than there are, at which an interval reaches `margin` to either side: it falls as 1 / sqrt(n)."""
    half = (difference.high - difference.low) / 2
    return max(evidence.count + 1, math.ceil(evidence.count * (half / margin) ** 2))


def _stricter(tests: int) -> float:
    """By how much wider an interval is where the least of so many p-values is asked to be real (Holm's first step)."""
    return NormalDist().inv_cdf(1 - LEVEL / tests / 2) / _WIDE


def _scored(evidence: Evidence, option: Option) -> str:
    interval = f"{option.low:.2f} to {option.high:.2f}"
    on = f"on {spaced(evidence.count)} {evidence.unit}{_mean_of_runs(evidence)}"
    return f"{evidence.metric} is {option.score:.2f} ({interval}) {on}."


def _mean_of_runs(evidence: Evidence) -> str:
    return f", the mean of {evidence.runs} runs of k-means" if evidence.runs else ""


def _interval(option: Option) -> str:
    found = option.difference
    return f"{found.estimate:+.2f} points, {found.low:+.2f} to {found.high:+.2f}"
