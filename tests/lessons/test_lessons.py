"""What every lesson holds to, and that its answers are the core's own numbers."""

import math
import re
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest
import torch

import whitelab
from tests.conftest import float64_by_default, make_space
from whitelab.encoding.embeddings import LayerEmbeddings
from whitelab.lessons import LESSONS, Choice, Cloud, Curve, NoAnswer, Number, answered, asked, gain, hubs, together
from whitelab.lessons import dimensions as dimensions_lesson
from whitelab.lessons import sentences as sentences_lesson
from whitelab.lessons import spread as spread_lesson
from whitelab.lessons import training as training_lesson
from whitelab.lessons.clouds import KINDS, ghosts, measured, placed
from whitelab.lessons.lesson import Answer, setting_on, similar, written
from whitelab.scoring.fit_scopes import halves
from whitelab.scoring.setting import Setting
from whitelab.statistics import geometry
from whitelab.statistics.moments import Moments
from whitelab.statistics.significance import Difference
from whitelab.sweeps.layer_profiles import losses, transformed

STEPS = [(number, step) for number, lesson in LESSONS.items() for step in range(1, len(lesson.steps) + 1)]
REACHED = {(1, 2): (1.5, 0.0), (2, 2): (3.0, 0.5), (3, 1): (-26.0, 0.5, 1.8)}  # the goal of each cloud


def with_similar(space):
    """The same with enough pairs of two different sentences that count as similar: a lesson needs ten."""
    return replace(space, gold=(space.gold + 0.5).clamp(max=5.0))


@pytest.fixture
def space():
    """Pairs that fall into halves without a common sentence."""
    return with_similar(make_space(n=160, sizes=(50, 40), seed=5))


@pytest.fixture
def dense():
    """Few sentences in many pairs."""
    return with_similar(make_space())


def of(number: int, step: int, space):
    """What the measure of a step takes."""
    needs = LESSONS[number].steps[step - 1].needs
    return {"space": space, "cloud": REACHED.get((number, step)), "": None}[needs]


def score(space, text: str) -> float:
    return whitelab.score(space, setting_on(space, text), isotropy=False).spearman


# ------------------------------------------------------------------------------------------- every lesson


def test_there_are_ten_lessons_with_all_that_a_teacher_needs():
    assert list(LESSONS) == list(range(1, 11))
    for lesson in LESSONS.values():
        assert len(lesson.steps) >= 3
        assert 3 <= lesson.minutes <= 15
        assert lesson.question.endswith("?")
        assert all((lesson.title, lesson.does, lesson.sees, lesson.misconception))
        assert "!" not in lesson.question + lesson.misconception


@pytest.mark.parametrize(("number", "step"), STEPS)
def test_every_setting_of_a_lesson_can_be_parsed_and_is_on_the_space(number, step, space):
    setting = LESSONS[number].setting_at(step)
    assert Setting.parse(str(setting)) == setting
    assert setting_on(space, str(setting)).on(space).layers


@pytest.mark.parametrize(("number", "step"), STEPS)
def test_every_answer_has_the_form_of_its_prediction_and_its_words_name_all_that_was_measured(
    number, step, space, monkeypatch
):
    monkeypatch.setattr(dimensions_lesson, "_NEAR", 20.0)  # of so few dimensions none can go for a point
    question, ask = asked(number, step, space)
    answer = answered(number, step, of(number, step, space))
    assert len(question) > 20
    assert "!" not in question + answer.words
    assert ask.rule
    assert answer.numbers
    assert isinstance(ask, Curve) or not answer.curves  # they are drawn beside a curve that was predicted
    assert [name for name, value in answer.numbers.items() if written(value) not in answer.words] == []
    if isinstance(ask, Number):
        assert ask.right(answer.value, answer)
    elif isinstance(ask, Choice):
        assert set(answer.accepted) <= set(ask.options)
        assert ask.right(answer.value, answer)
    elif isinstance(ask, Curve):
        assert len(answer.value) == len(ask.names) == len(ask.start)
        assert ask.right(answer.value, answer)
        assert all(len(curve) == len(ask.names) for curve in answer.curves.values())
    else:
        assert ask.right(of(number, step, space), answer)
        assert not ask.right(KINDS[ask.kind].start, answered(number, step, KINDS[ask.kind].start))


@pytest.mark.parametrize(("number", "step"), STEPS)
def test_every_step_answers_or_says_why_it_cannot_where_data_are_few_or_of_lower_rank(number, step, thin, layernorm):
    for space in (thin, layernorm):
        with suppress(NoAnswer):  # any other exception fails
            _, ask = asked(number, step, space)
            assert not isinstance(ask, Number) or ask.low < ask.high
            answer = answered(number, step, of(number, step, space))
            assert answer.words
            if isinstance(ask, Choice):  # what is shown as measured counts as right, and can be chosen
                assert ask.right(answer.value, answer)
                assert ask.several <= len(answer.accepted)


WHITENED_IN_FULL = [
    (3, 2),
    (3, 3),
    (4, 1),
    (4, 2),
    (5, 1),
    (5, 2),
    (5, 3),
    (6, 2),
    (6, 3),
    (6, 4),
    (7, 2),
    (7, 3),
    (8, 2),
    (8, 3),
]


@pytest.mark.parametrize(("number", "step"), WHITENED_IN_FULL)
def test_what_a_map_of_too_few_sentences_gives_is_not_explained(number, step, distinct):
    distinct = replace(distinct, gold=(distinct.gold + 2.5).clamp(max=5.0))  # enough of them similar
    for ask in (asked, answered):
        with pytest.raises(NoAnswer, match="^36 different vectors span only 35 of 40 dimensions.*on more text$"):
            ask(number, step, distinct)


def test_training_and_whitening_are_compared_at_the_same_number_of_directions(dense):
    few = with_few_sentences(dense)
    question, _ = asked(10, 3, few)
    assert f"starts at {few.n_sentences // 3} random directions" in question
    white = score(few, f"{training_lesson._SETTING}@{few.n_sentences // 3}")
    assert answered(10, 3, few).numbers["PCA whitening"] == white


TERMS = ("identity", "covariance", "score", "gold score", "95 % interval", "shrinkage", "batch", "views")


def test_a_term_is_explained_where_a_lesson_first_has_it(space, monkeypatch, subtests):
    """There, and there only, it stands out."""
    monkeypatch.setattr(dimensions_lesson, "_NEAR", 20.0)
    texts = []
    for number, lesson in LESSONS.items():
        steps = range(1, len(lesson.steps) + 1)
        parts = [(asked(number, i, space)[0], answered(number, i, of(number, i, space)).words) for i in steps]
        texts.append(" ".join(map(" ".join, parts)))
    for term in TERMS:
        with subtests.test(term):
            having = 0
            for text in texts:
                words = text if term.startswith("gold") else text.replace("gold score", "")
                if first := re.search(term, words, re.IGNORECASE):
                    having += 1
                    assert words[first.start() - 2 : first.end() + 2].lower() == f"**{term}**"
            assert having


def test_training_is_said_to_start_at_random_directions_where_its_start_is_measured(space, dense):
    for here in (space, dense):
        start = training_lesson.trained(here, "mse")[0]
        question, words = asked(10, 1, here)[0], answered(10, 1, here).words
        assert f"starts at {min(here.dim, here.n_sentences // 3)} random directions" in question
        assert f"{written(start.mean_cosine)} before the first step, at random directions" in words


def test_what_a_trained_map_will_score_is_asked_without_training_one(space, monkeypatch):
    monkeypatch.setattr(training_lesson, "trained", None)
    raw = written(score(space, "L1"))
    assert f"Raw, layer 1 has {raw}." in asked(10, 3, space)[0]


@pytest.mark.parametrize(("number", "step"), [(3, 2), (4, 2), (5, 1), (6, 2), (10, 3)])
def test_a_score_below_chance_which_nobody_can_predict_is_no_answer(number, step, space):
    turned = replace(space, gold=5 - space.gold)
    assert whitelab.score(turned, Setting.parse("L-1:pca")).spearman < 0
    with pytest.raises(NoAnswer, match=r"^-\d+\.\d\d is measured, and predictions go from 0 to 100$"):
        answered(number, step, turned)


@pytest.mark.parametrize(
    ("number", "step"), [(3, 2), (4, 1), (4, 2), (5, 1), (5, 2), (6, 1), (6, 2), (6, 4), (8, 1), (8, 3), (10, 3)]
)
def test_a_score_of_a_handful_of_pairs_is_no_answer_and_not_asked_for(number, step):
    few = make_space(sizes=(9,))
    for ask in (asked, answered):
        with pytest.raises(NoAnswer, match="^9 pairs are too few for a score that is more than luck: 10 are needed$"):
            ask(number, step, few)


def with_few_sentences(space):
    """The embeddings of the first 21 sentences, with the pairs between them."""
    pairs = ((space.first < 21) & (space.second < 21)).nonzero()[:, 0]
    own = (space.first[pairs], space.second[pairs], space.gold[pairs], 0 * pairs)
    return LayerEmbeddings(space.values[:, :21], *own, space.subset_names[:1], space.origin)


@pytest.mark.parametrize(("number", "step"), STEPS)
def test_a_prediction_survives_the_address(number, step, space):
    _, ask = asked(number, step, space)
    if isinstance(ask, Number):
        guesses = [ask.low, ask.high]
    elif isinstance(ask, Choice):
        guesses = [ask.options[-1] if ask.several == 1 else ask.options[-ask.several :]]
    elif isinstance(ask, Curve):
        guesses = [ask.start, (ask.high,) * len(ask.names)]
    else:
        guesses = [KINDS[ask.kind].start, REACHED[number, step]]
    for guess in guesses:
        assert ask.read(ask.write(guess)) == guess
        assert ask.shown(guess)
    for text in ("", "no", "1e9,2", "nan"):
        with pytest.raises(ValueError, match=r"."):
            ask.read(text)


# ----------------------------------------------------------------------------- the core's own numbers


def test_the_narrowest_layer_is_the_one_with_the_highest_mean_cosine(space):
    cosines = [whitelab.shape(space, Setting((layer,))).mean_cosine for layer in range(space.n_layers)]
    answer = answered(1, 3, space)
    assert answer.value == f"Layer {cosines.index(max(cosines))}"
    assert list(answer.numbers.values()) == pytest.approx(cosines)


def test_a_layer_with_one_vector_for_all_sentences_is_no_cone(space):
    """As the word vector of [CLS] is."""
    values = space.values.clone()
    values[0] = values[0, 0]
    values[1:3] += 100  # cosines that are 1.00 in two digits, of sentences that differ
    answer = answered(1, 3, replace(space, values=values))
    assert answer.accepted == ("Layer 1", "Layer 2")
    assert "Layer 0 has one vector for all sentences, which is no cone" in answer.words
    assert "looks like a likeness" not in answer.words  # no pair lies above a cosine of 1
    assert "looks like a likeness" in answered(1, 3, replace(space, values=space.values + 1)).words
    with pytest.raises(NoAnswer, match="every layer has one vector for all sentences"):
        answered(1, 3, replace(space, values=values[:1]))
    for number in (1, 4):  # whose last steps are on several layers
        with pytest.raises(NoAnswer, match="one layer only"):
            asked(number, 3, replace(space, values=values[1:2]))


@pytest.mark.parametrize(("pooling", "words"), [("mean", True), ("unit_mean", True), ("cls", False), ("given", False)])
def test_words_have_not_seen_one_another_in_the_lowest_layer_only_where_they_are_averaged(pooling, words, space):
    there = replace(space, origin=replace(space.origin, pooling=pooling))
    assert ("no word has seen another yet" in asked(1, 3, there)[0]) is words
    assert ("no word has seen another yet" in asked(4, 1, there)[0]) is (pooling == "mean")


def test_the_shared_variance_is_the_participation_ratio_of_the_centred_layer(space):
    assert answered(2, 3, space).value == whitelab.shape(space, Setting.parse("L1:center")).participation_ratio


@pytest.mark.parametrize(("wide", "flat"), [((4.0, 1.0, 1.0, 1.0), True), ((1.0, 1.0, 1.0, 1.0), False)])
def test_an_ellipsoid_is_called_flat_where_few_of_its_directions_share_the_variance(wide, flat):
    values = torch.tensor(wide) * torch.randn(1, 60, 4, generator=torch.Generator().manual_seed(0))
    rows = torch.arange(30)
    space = LayerEmbeddings(values, rows, rows + 30, rows / 6, 0 * rows, ("",))
    assert ("flat ellipsoid" in answered(2, 3, space).words) is flat


def test_few_sentences_share_their_variance_among_as_many_directions_as_they_span(thin):
    assert thin.span < thin.dim
    assert f"and {thin.span} at most" in asked(2, 3, thin)[0]


def test_the_most_directions_that_can_share_the_variance_are_those_that_the_layer_spans(layernorm):
    most = f"{layernorm.dim - 1} at most"
    assert most in asked(2, 3, layernorm)[0]
    answer = answered(2, 3, layernorm)
    assert most in answer.words
    assert answer.numbers["participation ratio, whitened"] == pytest.approx(layernorm.dim - 1)


def test_the_three_bars_are_the_scores_of_the_three_whitenings_and_signs_are_taken_of_their_vectors(space):
    assert answered(3, 2, space).value == tuple(score(space, f"L2:{name}") for name in ("pca", "zca", "cholesky"))
    bits = torch.sign(transformed(space, Setting.parse("L2:zca")))
    rho = whitelab.spearman(geometry.row_cosines(bits, space.first, space.second), space.gold)
    assert answered(3, 3, space).numbers["ZCA, one bit"] == pytest.approx(100 * float(rho))


@pytest.mark.parametrize(("step", "text"), [(1, "L0:pca"), (2, "L-1:pca")])
def test_the_gain_of_a_layer_is_its_score_whitened_beside_raw(step, text, space):
    answer = answered(4, step, space)
    assert answer.value == score(space, text)
    assert answer.numbers["raw"] == score(space, text.partition(":")[0])
    assert answer.numbers["centred"] == score(space, f"{text.partition(':')[0]}:center")


def gap(high: float, low: float) -> str:
    """What a reader finds who subtracts the numbers as they stand in the words."""
    return written(float(written(high)) - float(written(low)))


@pytest.mark.parametrize(
    ("number", "step", "said"),
    [
        (3, 2, lambda of: f"of {written(abs(float(gap(of['PCA'], of['raw']))))} points on this layer"),
        (3, 3, lambda of: f"differ by up to {gap(*ends(of, 'one bit'))} points"),
        (4, 1, lambda of: f"changes the score by {float(gap(of['centred'], of['raw'])):+z.2f}, and"),
        (4, 2, lambda of: f"strong after that by {float(gap(of['whitened'], of['centred'])):+z.2f}"),
        (5, 1, lambda of: f"to all sentences it is {gap(of['all 160'], ends(of, '60', 'd')[1])} points"),
        (6, 1, lambda of: f"{gap(*sorted(map(of.get, dimensions_lesson._KEPT.values()))[:1:-1])} points above"),
        (6, 2, lambda of: f"the score is {gap(of['best'], of['k = 12 (d)'])} points lower"),
        (9, 3, lambda of: f"a difference of {float(gap(of['average'], of['layer'])):+z.2f}, with"),
    ],
)
def test_a_difference_is_that_of_the_numbers_that_are_written_beside_it(number, step, said):
    for seed in range(5, 15):  # of one space they may agree although unrounded numbers are subtracted
        answer = answered(number, step, with_similar(make_space(n=160, sizes=(50, 40), seed=seed)))
        assert said(answer.numbers) in answer.words


def ends(numbers, *marks: str) -> tuple[float, float]:
    """The highest and the lowest of the numbers whose names end so."""
    those = [value for name, value in numbers.items() if name.endswith(marks)]
    return max(those), min(those)


@pytest.mark.parametrize("whitened", [45.0, 30.0])
@pytest.mark.parametrize("centred", [8.0, 2.0, 5.0, -15.0])
def test_a_change_is_laid_to_centring_and_to_the_stretch_by_what_each_does(centred, whitened, space, monkeypatch):
    scores = {"none": 40.0, "center": 40.0 + centred, "pca": whitened}
    monkeypatch.setattr(gain, "spearman", lambda space, setting: scores[setting.whitening])
    words = answered(4, 2, space).words
    stretch = whitened - scores["center"]
    assert f"changes the score by {centred:+.2f}, and" in words
    assert f"equally strong after that by {stretch:+.2f}" in words
    assert ("equal weights rank these pairs better" in words) is (stretch > 0)
    assert ("better than equal ones" in words) is (stretch < 0)


@pytest.mark.parametrize(("cosine", "lie"), [(0.6, "in a cone"), (0.1, "not in a cone")])
def test_sentences_lie_in_a_cone_where_the_mean_cosine_says_so(cosine, lie, space, monkeypatch):
    monkeypatch.setattr(gain, "shape", lambda *of: replace(whitelab.shape(*of), mean_cosine=cosine))
    assert f"so they lie {'spread around already, ' * (cosine < 0.2)}{lie}." in answered(4, 2, space).words


def test_the_map_of_an_unseen_genre_has_not_seen_its_sentences(space):
    apart = gain.unseen(space)
    assert set(space.subset[apart.pairs].tolist()) == {space.n_subsets - 1}
    others = space.subset != space.n_subsets - 1
    theirs, rows = (torch.cat([space.first[of], space.second[of]]).tolist() for of in (~others, others))
    assert set(theirs) & set(rows)  # sentences of other genres too, which the map may not see
    rows = [row for row in rows if row not in theirs]
    x = space.combine((1,))
    white = whitelab.fit("pca", Moments.of(x[rows]))(x)
    first, second, gold = space.first[apart.pairs], space.second[apart.pairs], space.gold[apart.pairs]
    after, before = (100 * float(whitelab.spearman(geometry.row_cosines(z, first, second), gold)) for z in (white, x))
    unseen = gain.gain_unseen(space, "L1:pca")
    assert unseen.estimate == pytest.approx(after - before)
    assert unseen.low <= unseen.estimate <= unseen.high


def test_of_pairs_without_genres_a_half_is_set_apart_and_of_very_few_nothing(thin):
    alone = make_space(sizes=(40,))
    assert asked(4, 3, alone)[0].startswith("Set aside 21 of the 40 pairs, fit the map on all other sentences")
    assert not re.search("genre|These maps had", answered(4, 3, alone).words)
    wide = make_space(d=40, sizes=(40,))
    fitted = len(gain.unseen(wide).rows.unique())
    assert f"These maps had {fitted} sentences for 40 directions: with more" in answered(4, 3, wide).words
    with pytest.raises(NoAnswer, match="2 pairs set apart are too few"):
        answered(4, 3, thin)


def test_a_genre_with_all_sentences_of_the_others_leaves_none_to_fit_on(space):
    twice = replace(space, first=space.first.repeat(2), second=space.second.repeat(2), gold=space.gold.repeat(2),
                    subset=torch.arange(2).repeat_interleave(space.n_pairs), subset_names=("one", "same"))  # fmt: skip
    with pytest.raises(NoAnswer, match="same has all sentences of the other pairs"):
        asked(4, 3, twice)


def test_pairs_that_all_share_one_sentence_have_no_half_to_set_apart():
    whole = make_space(sizes=(40,))
    with pytest.raises(NoAnswer, match="two halves without a common sentence"):
        asked(4, 3, replace(whole, first=torch.zeros_like(whole.first)))


def test_what_counts_as_right_beside_the_answer_is_measured_too():
    letter, number = Choice(("a", "b", "c", "d")), Number("", 0.0, 1.0, 0.1, 0.1)
    for ask, one, two, *rest in ((letter, "b", "a", "c", "d"), (number, 0.5, 0.25, 0.75, 1.0)):
        shown = ask.shown(one)
        assert ask.measured(Answer(one, "", {}, accepted=(two, one))) == f"{shown} or {ask.shown(two)}"
        assert ask.measured(Answer(one, "", {}, accepted=(two, one, *rest))) == f"{shown} or one of 3 others"
        assert ask.measured(Answer(one, "", {})) == shown


@pytest.mark.parametrize("wide", [4.0, 0.4, 0.0])
@pytest.mark.parametrize(
    ("lows", "accepted"),
    [
        ((0.2, -0.3, -0.3, -0.3, -0.3), [0]),  # a certain gain
        ((-0.2, -0.3, -0.3, -0.3, -0.3), [None]),  # none
        ((0.02, -0.3, -0.3, -0.3, -0.3), [0, None]),  # another draw may find none
        ((-0.02, -0.3, -0.3, -0.3, -0.3), [0, None]),  # another draw may find one
        ((0.2, -0.02, -0.3, -0.3, -0.3), [0, 1]),
    ],
)
def test_a_gain_that_hangs_on_the_draw_counts_either_way(lows, accepted, wide, space, monkeypatch):
    """Ends of intervals in widths of these; one without a width hangs on nothing."""
    names = list(gain.CANDIDATES)
    ends = dict(zip(gain.CANDIDATES.values(), lows, strict=True))

    def found(space, text) -> Difference:
        low = ends[text] * (wide or 1.0)
        return Difference(low + wide / 2, low, low + wide, 0.1)

    monkeypatch.setattr(gain, "gain_unseen", found)
    sure = [place for place, low in enumerate(lows) if low > 0]
    wanted = {"None of these" if place is None else names[place] for place in (accepted if wide else sure or [None])}
    assert set(gain.beats_raw(space).accepted) == wanted


def test_the_first_step_on_the_gain_asks_for_the_lowest_layer_that_has_a_score(space):
    alike = LayerEmbeddings(
        torch.cat([space.values[:1] * 0 + 1, space.values[1:]]), space.first, space.second, space.gold, space.subset,
        space.subset_names,
    )  # fmt: skip
    assert asked(4, 1, alike)[0].count("Layer 1 scores") == 1
    assert answered(4, 1, alike).value == score(alike, "L1:pca")


def test_the_curve_over_sentences_ends_where_the_score_of_all_sentences_is(space):
    once = space.counts.new_ones(space.n_sentences)  # a sample has each sentence once
    setting = setting_on(space, "L-1:pca")
    carrying = space.with_text("all", whitelab.LayerRows(space.values, once))
    whole = whitelab.score(carrying, setting.with_(fit="all"), isotropy=False).spearman
    answer = answered(5, 1, space)
    assert answer.value[-1] == pytest.approx(whole)
    assert list(sentences_lesson.sizes(space).values())[-1] == space.n_sentences
    few = answered(5, 2, space).numbers["plain"]
    assert answered(5, 3, space).numbers["Fit on more sentences, lowest"] == pytest.approx(whole)
    assert answered(5, 3, space).numbers["Plain, lowest"] <= few <= answered(5, 3, space).numbers["Plain, highest"]
    gap = answered(5, 2, space).numbers["apart with all sentences"]
    rescued = whitelab.score(carrying, setting.with_(fit="all", whitening="shrunk"), isotropy=False).spearman
    assert gap == pytest.approx(abs(rescued - whole))
    weighed = score(space, "L-1:pca")  # the page's
    assert written(weighed) != written(whole)
    assert f"as often as it occurs, as on the page below, all of them give {written(weighed)}" in answer.words


def test_a_question_does_not_name_what_an_earlier_step_asks_for(space, monkeypatch):
    """Where a teacher keeps the answers, every later question would tell them."""
    monkeypatch.setattr(dimensions_lesson, "_NEAR", 20.0)
    for number, lesson in LESSONS.items():
        for step in range(2, len(lesson.steps) + 1):
            question = asked(number, step, space)[0]
            for earlier in range(1, step):
                if lesson.steps[earlier - 1].needs != "space":
                    continue
                answer = answered(number, earlier, space)
                values = answer.value if isinstance(answer.value, tuple) else (answer.value,)
                told = {written(value) for value in values if not isinstance(value, str)}
                told |= {written(max(values))} if number == 6 and earlier == 2 else set()
                named = [one for one in told if re.search(rf"(?<![\d.]){re.escape(one)}(?!\.?\d)", question)]
                assert named == [], (number, earlier, step)


def by_draw(space, text: str, size: int) -> list[float]:
    """The scores of maps fitted on each of the lesson's draws of `size` sentences."""
    scores = []
    for seed in range(5):
        rows = torch.randperm(space.n_sentences, generator=torch.Generator().manual_seed(seed))[:size]
        setting, x = setting_on(space, text), space.combine((space.n_layers - 1,))
        z = whitelab.fit(setting.whitening, Moments.of(x[rows]), setting.k)(x)
        scores.append(100 * float(whitelab.spearman(geometry.row_cosines(z, space.first, space.second), space.gold)))
    return scores


def test_zca_and_cholesky_are_no_remedies_and_every_remedy_gains_in_every_draw(space):
    answer, plain = answered(5, 3, space), by_draw(space, "L-1:pca", space.dim)
    for end, value in (("lowest", min(plain)), ("highest", max(plain))):
        assert answer.numbers[f"Plain, {end}"] == pytest.approx(value)
        for name in sentences_lesson.REMEDIES[3:]:
            assert answer.numbers[f"{name}, {end}"] == pytest.approx(value, abs=1e-6)
    settings = dict(zip(sentences_lesson.REMEDIES[1:3], ("L-1:shrunk", "L-1:pca@3"), strict=True))
    for name, text in settings.items():
        gains = [after - before for after, before in zip(by_draw(space, text, space.dim), plain, strict=True)]
        assert (name in answer.accepted) is (min(gains) > 0.5)


def test_beside_one_draw_of_sentences_stands_what_others_give(space):
    answer = answered(5, 1, space)
    for name, size in list(sentences_lesson.sizes(space).items())[:-1]:
        scores = by_draw(space, "L-1:pca", size)
        assert answer.numbers[name] == pytest.approx(scores[0])
        assert f"({written(min(scores))} to {written(max(scores))})" in answer.words


def test_a_draw_that_falls_far_below_the_others_is_laid_to_its_weakest_direction_where_that_is_so():
    seen = set()
    for seed in range(5, 25):
        space = with_similar(make_space(n=160, sizes=(50, 40), seed=seed))
        answer = answered(5, 1, space)
        sizes = sentences_lesson.sizes(space)
        lowest = min(sizes, key=lambda name: answer.numbers[name])
        for name, size in sizes.items():
            scores = by_draw(space, "L-1:pca", size)
            middle, low = sorted(scores)[2], min(scores)
            falls = middle - low > 5 and name != lowest
            assert (f"One draw of {name} falls to {written(low)}. " in answer.words) is falls
            if falls:
                rank = min(size - 1, space.dim)
                mended = by_draw(space, f"L-1:pca@{rank - 1}", size)[scores.index(low)]
                blown_up = mended >= middle - 5
                reason = (
                    ": its sentences differ least along that one"
                    if blown_up
                    else ", so that one alone is not the reason"
                )
                assert f"Without the weakest of its directions it scores {written(mended)}{reason}" in answer.words
                seen.add(blown_up)
    assert seen == {True, False}


def test_the_controls_are_scores_of_raw_coordinates_and_the_curve_is_that_of_k(space, monkeypatch):
    layers, d = setting_on(space, "L-1").layers, space.dim
    assert dimensions_lesson.prefix_score(space, layers, d) == pytest.approx(score(space, "L-1"))
    assert dimensions_lesson.random_score(space, layers, d) == pytest.approx(score(space, "L-1"))
    assert dimensions_lesson.random_score(space, layers, 3) != dimensions_lesson.prefix_score(space, layers, 3)
    curve = whitelab.k_curve(space, setting_on(space, "L-1:pca"))
    assert answered(6, 2, space).value == tuple(curve.spearman[k - 1] for k in (2, 2, 3, 6, 12))
    monkeypatch.setattr(dimensions_lesson, "_NEAR", near := max(curve.spearman) - curve.spearman[1] + 1e-9)
    accepted = answered(6, 4, space).accepted
    assert accepted == tuple(k for k in range(1, 4) if curve.spearman[k - 1] >= max(curve.spearman) - near)
    assert 2 in accepted


@pytest.mark.parametrize(
    ("lead", "wanted"), [(0.6, "The strongest half of the directions, whitened"), (0.4, "None of them leads")]
)
def test_a_half_leads_by_more_than_a_tie_or_none_does(lead, wanted, space, monkeypatch):
    halves = {"prefix": 60.0, "random": 50.0, "pca": 60.0 + lead, "soft": 55.0}
    monkeypatch.setattr(dimensions_lesson, "halves_of", lambda space: halves)
    answer = answered(6, 1, space)
    _, ask = asked(6, 1, space)
    assert [option for option in ask.options if ask.right(option, answer)] == [wanted]


def test_whitening_is_weighed_against_each_control_at_every_k_of_its_curve(space):
    answer = answered(6, 2, space)
    for name in ("first coordinates", "random coordinates"):
        leads = [white - free for white, free in zip(answer.value, answer.curves[name], strict=True)]
        ahead, behind = sum(lead > 0.5 for lead in leads), sum(lead < -0.5 for lead in leads)
        level = len(leads) - ahead - behind
        assert f"against {name} ahead at {ahead}, level at {level} and behind at {behind}" in answer.words


def test_all_directions_are_those_that_the_map_keeps(layernorm, monkeypatch):
    monkeypatch.setattr(dimensions_lesson, "_NEAR", 20.0)
    for step in (2, 3, 4):
        words = answered(6, step, layernorm).words
        assert f"ll {layernorm.dim - 1} directions" in words
        assert f"ll {layernorm.dim} directions" not in words


def test_the_best_exponent_is_the_one_whose_score_is_highest(space):
    scores = {gamma: score(space, f"L-1:soft:gamma={gamma}") for gamma in (0.0, 0.25, 0.5, 0.75, 1.0)}
    assert answered(6, 3, space).value == max(scores, key=scores.get)


def test_hubs_are_counted_under_the_map_and_partners_looked_for_on_their_lists(dense):
    setting = setting_on(dense, "L1:pca")
    counts = geometry.hubness(geometry.nearest(transformed(dense, setting))).counts
    near = hubs.neighbours(dense, setting)
    assert near.largest == int(counts.max())
    assert near.hubs()[0][1] == int(counts.max())
    alike = [(int(a), int(b)) for a, b, gold in zip(dense.first, dense.second, dense.gold, strict=True) if gold > 4]
    place = {int(row): i for i, row in enumerate(near.rows)}
    hits = [place[b] in near.lists[place[a]].tolist() for a, b in alike if a != b]
    assert near.partners(dense).tolist() == hits


def test_a_lesson_on_hubs_names_the_sentences_and_the_pairs_it_looks_at(dense, monkeypatch):
    monkeypatch.setattr(hubs, "_MOST", 80)  # the first 40 pairs, seven of whose sentences repeat others at least
    rows = set(dense.first[:40].tolist() + dense.second[:40].tolist())
    assert 12 < len(rows) < 60
    question, ask = asked(7, 1, dense)
    assert f"For each of {len(rows)} sentences" in question
    assert ask.high == len(rows) - 1
    alike = [(int(a), int(b)) for a, b, gold in zip(dense.first, dense.second, dense.gold, strict=True) if gold > 4]
    pairs = sum(a in rows and b in rows and a != b for a, b in alike)
    assert f"Take {pairs} pairs of two different" in asked(7, 3, dense)[0]
    assert f"Of these {pairs} pairs" in answered(7, 3, dense).words


def test_lists_are_not_said_to_stay_where_only_the_partners_on_them_do(space, monkeypatch):
    raw, white = (hubs.neighbours(space, setting_on(space, text)).lists.tolist() for text in ("L1", "L1:pca"))
    kept = [len(set(before) & set(after)) for before, after in zip(raw, white, strict=True)]
    answer = answered(7, 3, space)
    assert answer.numbers["shared"] == pytest.approx(sum(kept) / len(kept))
    assert "lists hardly change" not in answer.words
    monkeypatch.setattr(hubs, "_NEAR", 100.0)
    assert "Nearly every partner was on its list already" in answered(7, 3, space).words
    monkeypatch.setattr(hubs, "_SETTING", "L1")
    assert answered(7, 3, space).numbers["shared"] == geometry.TOP
    monkeypatch.setattr(hubs, "_NEAR", 0.0)
    assert "Whether the partner is found hardly changes here" in answered(7, 3, space).words


@pytest.mark.parametrize(("pairs", "lost", "way"), [(71, 2, "As often"), (71, 3, "Less often"), (400, 4, "As often")])
def test_a_partner_or_two_are_no_less_often(space, monkeypatch, pairs, lost, way):
    found = iter([torch.ones(pairs, dtype=torch.bool), torch.arange(pairs) >= lost])
    monkeypatch.setattr(hubs.Neighbours, "partners", lambda *_: next(found))
    assert answered(7, 3, space).value.startswith(way)


@pytest.mark.parametrize(("there", "words"), [(8, "Whether the partner is found hardly changes"), (10, "Nearly every")])
def test_only_where_nearly_all_partners_were_there_was_no_room_to_rise(space, monkeypatch, there, words):
    monkeypatch.setattr(hubs.Neighbours, "partners", lambda *_: torch.arange(10) < there)
    assert words in answered(7, 3, space).words


def test_similar_is_what_the_pages_take_for_positive_at_first(space):
    edge = replace(space, gold=space.gold.index_fill(0, torch.arange(5), 4.0))
    assert similar(edge).tolist() == geometry.positives(edge.gold).tolist()


def test_the_largest_hub_is_placed_by_its_cosine_to_the_mean_direction(space):
    near, setting = hubs.neighbours(space, setting_on(space, "L1")), setting_on(space, "L1")
    u = geometry.normalize(transformed(space, setting)[near.rows])
    cosines = torch.nn.functional.cosine_similarity(u, u.mean(0, keepdim=True))
    beyond = (cosines < cosines[near.counts.argmax()]).sum()
    assert answered(7, 1, space).numbers["nearer to the mean"] == pytest.approx(100 * int(beyond) / len(u))


def test_a_hub_that_stays_and_a_score_that_stays_are_not_said_to_move(space, monkeypatch):
    monkeypatch.setattr(hubs, "_SETTING", "L1")  # no map: nothing moves
    assert answered(7, 2, space).value == "It does not grow, and the score does not rise"


def test_alignment_is_told_beside_the_distance_of_two_random_sentences(space):
    answer = answered(8, 1, space)
    for text, share in (("L2", "share, raw"), ("L2:center", "share, centred")):
        z = geometry.normalize(transformed(space, Setting.parse(text)))
        rows = torch.cat([space.first, space.second])  # every occurrence is one
        apart = torch.pdist(z[rows]).square().mean()
        alike = space.gold > 4
        close = (z[space.first[alike]] - z[space.second[alike]]).square().sum(1).mean()
        assert answer.numbers[share] == pytest.approx(float(100 * close / apart), rel=1e-6)
    assert answer.value == pytest.approx(float(close))


def test_the_map_that_ranks_best_is_the_one_whose_score_is_highest_and_near_ties_count(space):
    scores = [score(space, text) for text in ("L2", "L2:center", "L2:pca", "L2:pca@3")]
    _, ask = asked(8, 3, space)
    answer = answered(8, 3, space)
    assert answer.value == ask.options[scores.index(max(scores))]
    assert [ask.right(option, answer) for option in ask.options] == [one >= max(scores) - 0.5 for one in scores]


def test_averages_of_two_layers_are_counted_as_the_map_of_layer_pairs_scores_them(space):
    cells = {cell.layers: cell.spearman for cell in whitelab.layer_pairs(space, Setting((0,))).cells}
    ahead = [score > max(cells[a, a], cells[b, b]) for (a, b), score in cells.items() if a != b]
    answer = answered(9, 1, space)
    assert (answer.value, answer.numbers["averages"]) == (sum(ahead), len(ahead))
    assert answered(9, 2, space).numbers["Layer 1 and the last"] == pytest.approx(cells[1, space.n_layers - 1])


def test_layers_chosen_on_one_half_are_judged_on_the_other(space):
    late, numbers = halves(space), answered(9, 3, space).numbers
    every = [(a, b) for a in range(space.n_layers) for b in range(a, space.n_layers)]

    def scores(pairs, layers) -> float:
        cosines = geometry.row_cosines(space.combine(tuple({*layers})), space.first[pairs], space.second[pairs])
        return 100 * float(whitelab.spearman(cosines, space.gold[pairs]))

    for name, alone in (("average", False), ("layer", True)):
        best = max((layers for layers in every if (layers[0] == layers[1]) is alone), key=partial(scores, ~late))
        assert numbers[f"{name}, chosen on"] == pytest.approx(scores(~late, best))
        assert numbers[name] == pytest.approx(scores(late, best))
    means = [sum(scores(pairs, layers) for layers in every) / len(every) for pairs in (~late, late)]
    assert [numbers["all, chosen on"], numbers["all"]] == pytest.approx(means)
    assert numbers["candidates"] == len(every)
    for side, pairs in ((", chosen on", ~late), ("", late)):
        among = [scores(pairs, layers) for layers in every]
        for name in ("average", "layer"):
            place = numbers[f"the {name}, place{side.replace(',', '')}"]
            assert place == 1 + sum(float(gap(score, numbers[f"{name}{side}"])) > 0 for score in among)
    assert f"on the {int(late.sum())} other pairs" in asked(9, 3, space)[0]


@pytest.mark.parametrize("apart", [1.2, 1.03, 0.97, 0.8])
def test_why_similar_sentences_move_apart_is_said_where_they_do(apart, space, monkeypatch):
    alignments = {spread_lesson._CENTRED: 1.0, spread_lesson._SETTING: apart}
    measured = spread_lesson.spread
    monkeypatch.setattr(
        spread_lesson,
        "spread",
        lambda space, text: replace(found := measured(space, text), alignment=alignments.get(text, found.alignment)),
    )
    answer = answered(8, 2, space)
    assert ("along weak ones counts as much" in answer.words) is (apart > 1.05)
    assert answer.value.startswith("They move further apart") is (apart > 1.05)


@pytest.mark.parametrize(
    ("unseen", "average", "layer"),
    [
        ({(0,): 60.0, (1,): 49.0, (0, 1): 61.0, (0, 2): 49.0}, (1, ""), (2, "1.00")),
        ({(0,): 85.0, (1,): 79.0, (0, 1): 86.0, (0, 2): 79.0}, (1, ""), (2, "1.00")),
        ({(0,): 60.0, (1,): 62.5, (0, 1): 61.0, (0, 2): 49.0}, (2, "1.50"), (3, "2.50")),
        ({(0,): 60.0, (1,): 49.0, (0, 1): 59.0, (0, 2): 49.0}, (2, "1.00"), (1, "")),  # the other way round
        ({(0,): 84.0, (1,): 79.0, (0, 1): 84.0, (0, 2): 84.004}, (1, ""), (1, "")),
    ],
)
def test_a_place_lost_among_all_candidates_and_no_change_of_score_is_laid_to_luck_of_choosing(
    unseen, average, layer, space, monkeypatch
):
    """One half may be harder, or easier, for whatever is chosen, and most so for what scores low."""
    late, seen = halves(space), {(0,): 80.0, (1,): 50.0, (0, 1): 81.0, (0, 2): 50.0}
    monkeypatch.setattr(together, "scores", lambda space, pairs: unseen if torch.equal(pairs, late) else seen)
    words, lost = answered(9, 3, space).words, average[0] > 1 or layer[0] > 2
    for name, before, (after, behind) in (("average", 1, average), ("layer", 2, layer)):
        place = f"the {name} is number {before} on the half chosen on and number {after} on the other"
        assert (place + f", {behind} points behind the best there" * bool(behind) in words) == lost
    assert ("Here some are" in words, "Here neither has lost one" in words) == (lost, not lost)


def test_of_one_layer_no_average_is_asked_for(space):
    for step in (1, 2, 3):
        with pytest.raises(NoAnswer, match="one layer only"):
            asked(9, step, replace(space, values=space.values[:1]))


def test_training_starts_all_runs_from_one_map_and_gives_the_same_paths_twice(space):
    runs = {name: training_lesson.trained(space, name) for name in training_lesson.OBJECTIVES}
    assert len({path[0] for path in runs.values()}) == 1
    with float64_by_default():
        assert training_lesson.trained(space, "mse") == runs["mse"]
    assert answered(10, 3, space).value == runs["simcse"][-1].spearman
    cosines = {training_lesson.OBJECTIVES[name]: path[-1].mean_cosine for name, path in runs.items()}
    assert {name: answered(10, 2, space).numbers[name] for name in cosines} == cosines
    assert answered(10, 2, space).value == cosines["W-MSE"]


def test_a_space_that_starts_in_one_place_has_no_collapse_to_predict(space):
    narrow = replace(space, values=space.values + 100)
    for step in (1, 2):
        for ask in (asked, answered):
            with pytest.raises(NoAnswer, match=r"mean cosine of 1\.00 before the first step"):
                ask(10, step, narrow)


@pytest.mark.parametrize("fallen", [(), ("SimCSE",), ("Plain MSE",), ("SimCSE", "Plain MSE"), ("W-MSE", "Plain MSE")])
def test_reasons_of_a_collapse_are_those_of_the_runs_that_fell(fallen, space, monkeypatch):
    run = training_lesson.trained(space, "w-mse")
    ends = {
        name: (run[0], replace(run[-1], mean_cosine=0.95 if label in fallen else 0.1))
        for name, label in training_lesson.OBJECTIVES.items()
    }
    monkeypatch.setattr(training_lesson, "paths", lambda space: ends)
    first, second = (answered(10, step, space).words for step in (1, 2))
    assert ("only pulls together is satisfied" in first) is (fallen == ("Plain MSE",))
    assert ("the collapse is ruled out" in second) is ("Plain MSE" in fallen and "W-MSE" not in fallen)
    assert ("SimCSE keeps them apart too" in second) is (fallen == ("Plain MSE",))
    assert ("Plain MSE, which does not whiten, keeps" in second) is not ("MSE" in "".join(fallen))
    assert ("W-MSE has collapsed" in second) is ("W-MSE" in fallen)


def test_there_is_no_hub_among_so_few_sentences_that_ten_are_many(space):
    few = replace(
        space, first=space.first[:12], second=space.second[:12], gold=space.gold[:12], subset=space.subset[:12]
    )
    for ask in (asked, answered):
        with pytest.raises(NoAnswer, match=r"^\d\d sentences are too few for lists of ten neighbours: 30 are needed$"):
            ask(7, 1, few)


@pytest.mark.parametrize(
    ("gold", "why"),
    [
        (lambda gold: torch.full_like(gold, 3.0), "not defined|has the same gold score"),
        (lambda gold: gold.clamp(max=3.0).index_fill(0, torch.arange(1, 4), 4.5), "similar sentences are too few"),
    ],
)
def test_without_enough_pairs_that_are_similar_there_are_no_partners_to_look_for(gold, why, space):
    for ask in (asked, answered):
        with pytest.raises(NoAnswer, match=why):
            ask(7, 3, replace(space, gold=gold(space.gold)))
    for step in (1, 2, 3):
        with pytest.raises(NoAnswer, match=why):
            answered(8, step, replace(space, gold=gold(space.gold)))


@pytest.mark.parametrize("scale", [0.2, 20.0])
def test_on_another_scale_the_top_fifth_of_the_scores_is_similar(space, scale):
    scaled = replace(space, gold=scale * space.gold)
    top = torch.as_tensor(geometry.positives(space.gold, "top"))
    assert torch.equal(similar(scaled), top)
    for number, step in ((7, 3), (8, 1)):
        assert "above 4 of 5" in asked(number, step, space)[0]
        assert "in the top fifth of its range" in asked(number, step, scaled)[0]
    setting = setting_on(scaled, "L2")
    assert answered(8, 1, scaled).numbers["raw"] == pytest.approx(losses(scaled, setting, "top").alignment)
    paths = answered(10, 2, scaled).paths
    assert set(paths) == set(training_lesson.OBJECTIVES)
    assert not any(math.isnan(point["alignment"]) for path in paths.values() for point in path)


# ------------------------------------------------------------------------------------------------ clouds


def test_a_round_cloud_is_white_and_a_leaning_one_is_not():
    for kind in ("mean", "axes"):
        assert measured(kind, KINDS[kind].start).from_identity == pytest.approx(0, abs=1e-9)
    assert measured("turn", KINDS["turn"].start).from_identity > 1


def test_ghosts_are_white_and_have_one_matrix_of_cosines():
    tables = []
    for points in ghosts().values():
        assert torch.allclose(Moments.of(points).covariance, torch.eye(2, dtype=torch.float64))
        tables.append(geometry.normalize(points) @ geometry.normalize(points).T)
    assert torch.allclose(tables[0], tables[1])
    assert torch.allclose(tables[0], tables[2])
    first, second, _ = ghosts().values()
    assert not torch.allclose(first, second)


def test_a_turn_by_a_quarter_takes_across_to_upwards():
    points, turned = KINDS["turn"].points, placed("turn", (90.0, 1.0, 1.0))
    assert torch.allclose(turned, torch.stack([-points[:, 1], points[:, 0]], dim=1))


def test_what_is_measured_of_a_cloud_is_what_the_core_measures_of_its_points():
    points = placed("mean", (1.0, -0.5))
    cloud = measured("mean", (1.0, -0.5))
    assert cloud.mean_cosine == geometry.mean_cosine(points)
    assert sum(cloud.histogram) == len(points) * (len(points) - 1) // 2


@pytest.mark.parametrize("state", [(1.0,), (9.0, 0.0), (float("nan"), 0.0)])
def test_a_state_that_cannot_be_is_refused(state):
    with pytest.raises(ValueError, match="must"):
        placed("mean", state)


def test_bars_are_right_by_their_differences_alone():
    bars = Curve(("a", "b"), 0.0, 100.0, (0.0, 0.0), 1.0, bars=True)
    answer = Answer((20.0, 20.0), "", {})
    assert bars.right((50.0, 50.5), answer)
    assert not bars.right((20.0, 22.0), answer)
    assert isinstance(asked(3, 1, None)[1], Cloud)
