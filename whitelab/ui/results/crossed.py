"""What stands against a change from raw: the other test, and sentences that the map was not fitted on."""

from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.scoring.fit_scopes import thin_halves
from whitelab.scoring.paired import LEVEL
from whitelab.scoring.setting import Setting
from whitelab.statistics.correlation import ranked_at_once
from whitelab.statistics.significance import williams
from whitelab.ui.results.scores import number_of, standing
from whitelab.ui.results.study import study

NEAR = LEVEL / 5  # a p-value of Williams' test from which the bootstrap may have another view


def crossed(space: LayerEmbeddings, setting: Setting) -> str:
    """What cross-fitted halves show in place of the change that a task's own fit makes: `chance`, or where they turn it
    round beyond doubt `gain` or `loss`, of `VERDICTS`. Empty where they show it too, and where they can say nothing of
    it: thin halves (`fit_scopes.thin_halves`) are no sample of what the whole map does.

    Williams' test is asked first, and the bootstrap only where it decides: of what that test calls turned round, and of
    an average of subsets, of which it knows nothing.
    """
    if setting.fit != "task" or not setting.fits:
        return ""
    cross = setting.with_(fit="cross")
    try:
        if thin_halves(space, setting, number_of(space, setting).rank):
            return ""
        scores = [number_of(space, one).spearman for one in (setting.raw, setting, cross)]
    except ValueError:  # too few pairs for two halves
        return ""
    if None in scores:
        return ""
    shown_too = (scores[1] > scores[0]) == (scores[2] > scores[0])
    settings = (setting.raw, setting, cross)
    if ranked_at_once(space.n_subsets, setting.aggregate):
        if p_against_raw(space, cross) >= LEVEL:
            return "chance"
        if shown_too:
            return ""
    elif standing(space, settings, 1, 0).verdict not in ("gain", "loss"):
        return ""  # there is no change that they could show
    verdict = standing(space, settings, 2, 0).verdict
    if verdict in ("chance", "unclear"):
        return "chance"
    return verdict if verdict in ("gain", "loss") and not shown_too else ""


def objection(space: LayerEmbeddings, setting: Setting) -> str:
    """What stands against a change from raw that Williams' test calls real: `unclear` where the bootstrap does not,
    which is asked only near the level, else what halves show in its place (`crossed`).
    """
    settings = (setting.raw, setting)
    if (
        ranked_at_once(space.n_subsets, setting.aggregate)
        and None not in [number_of(space, one).spearman for one in settings]
        and NEAR <= p_against_raw(space, setting) < LEVEL
        and standing(space, settings, 1, 0).verdict == "unclear"
    ):
        return "unclear"
    return crossed(space, setting)


def p_against_raw(space: LayerEmbeddings, setting: Setting) -> float:
    """The p-value of Williams' test of a setting's difference from raw."""
    return study(_williams, space, setting)


def _williams(space: LayerEmbeddings, setting: Setting) -> float:
    now, raw = number_of(space, setting), number_of(space, setting.raw)
    return williams(now.cosines, raw.cosines, space.gold).p_value
