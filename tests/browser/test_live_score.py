"""The live score follows the hand in the browser itself, and stays in sight."""

import io
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from driving import CHART, IDLE, LIVE, PATIENCE, SIDEBAR, STILL, K, swipe
from playwright.sync_api import TimeoutError, expect

import whitelab
from whitelab import Setting
from whitelab.scoring.paired import doubt

STRIP = ".wl-strip"


def scores(demo, variant="pca"):
    """The package's score at every k, as the app writes it."""
    return [f"{score:.2f}" for score in whitelab.k_curve(demo, Setting.parse(f"L1:{variant}")).spearman]


def offline(visit):
    """Drop what the browser sends from now on: whatever still moves, moves without the server."""
    visit.page.evaluate("() => { WebSocket.prototype.send = () => {} }")


def reach_for(page, knob, ready):
    """Move the pointer to a knob until its numbers are there; one that is drawn anew under it must be met again."""
    for _ in range(20):
        page.mouse.move(0, 0)
        knob.hover()
        try:
            return page.wait_for_function(ready, timeout=9000)
        except TimeoutError:
            continue
    raise AssertionError(f"never came: {ready}")


def test_the_number_follows_the_thumb_without_the_server(app, visit, demo):
    shown = visit(app)
    page, wanted = shown.open("whitening"), scores(demo)
    offline(shown)
    slider = page.locator(K)
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] - 8, middle)
    page.mouse.down()
    seen = []
    for share in (0.9, 0.6, 0.3):
        page.mouse.move(box["x"] + share * box["width"], middle)
        seen.append((shown.k(), shown.live()))
    page.mouse.up()
    assert len({k for k, _ in seen}) == 3
    assert [live for _, live in seen] == [wanted[k - 1] for k, _ in seen]
    slider.press("ArrowLeft")
    assert shown.live() == wanted[shown.k() - 1]


def test_a_change_that_may_be_chance_or_says_nothing_has_no_colour_and_says_so(app, visit, tmp_path):
    """Where the server has spoken as the test has it; while k is moved, by the bounds of the k tested last."""
    pairs, few = whitelab.load("demo"), tmp_path / "few.tsv"
    rows = list(zip(pairs.first_index[:60], pairs.second_index[:60], pairs.gold[:60], strict=True))
    rows.append((rows[0][0], rows[1][1], 2.0))  # some sentences twice: else no two cosines would differ in the end
    few.write_text("".join(f"{pairs.sentences[a]}\t{pairs.sentences[b]}\t{gold:g}\n" for a, b, gold in rows))
    space, _ = whitelab.embed_pairs(whitelab.load_encoder("bundled"), whitelab.load(few))
    raw = whitelab.score(space, Setting.parse("L1"), isotropy=False)
    ks = [*range(2, 60), *range(space.n_sentences - 5, space.n_sentences + 5)]
    found = {k: whitelab.score(space, Setting.parse(f"L1:pca@{k}"), isotropy=False) for k in ks}
    doubts = {k: doubt(space, one, raw) for k, one in found.items()}
    unsure = {k: bool(doubts[k].verdict(one.spearman, one.rank)) for k, one in found.items() if k < 60}
    assert set(unsure.values()) == {True, False}
    shown = visit(app)

    def said(k, of):
        change, known = found[k].spearman - raw.spearman, doubts[of].verdict(found[k].spearman, found[k].rank)
        words = {"": "against raw", "chance": "(could be chance)", "starved": "(no verdict)"}[known]
        return f"{change:+.2f} {words}", "0" if known else str(int(change > 0) - int(change < 0))

    def live():
        part = shown.page.locator(f"{SIDEBAR} .wl-change")
        return part.inner_text(), part.get_attribute("data-sign")

    for sure in (False, True):
        k = next(k for k, one in unsure.items() if one is not sure)
        shown.open(f"whitening?{urlencode({'data': few, 'k': k})}")
        assert live() == said(k, k)
    # From the second on it passes the k from which all sentences are equally far apart.
    for start in (k, ks[-10]):
        shown.open(f"whitening?{urlencode({'data': few, 'k': start})}")
        offline(shown)
        for at in range(start + 1, start + 9):
            shown.page.locator(K).press("ArrowRight")
            assert live() == said(at, start)
    assert "(no verdict)" in live()[0]


def test_a_layer_or_variant_paints_its_number_before_the_server_has_heard_of_it(app, visit, scored):
    shown = visit(app)
    page = shown.open("whitening?k=200")
    pills = page.locator(f'{SIDEBAR} [aria-label="Layers, averaged"] button')
    # One of the seven cannot be taken out.
    reach_for(page, pills.nth(3), "() => document.querySelectorAll('[data-gain]').length === 6")
    wanted = scored(layers=(1, 3), k=200)
    gain = float(pills.nth(3).get_attribute("data-gain"))
    assert gain == pytest.approx(float(wanted) - float(shown.live()), abs=0.06)
    pills.nth(1).click()
    shown.settle()
    assert (shown.layers(), shown.live()) == ([1], scored(k=200))
    pills.nth(3).click()
    shown.await_live(wanted)
    knob = page.locator(f"{SIDEBAR} .st-key-whitening input")
    reach_for(page, knob, "() => (({ knob, more }) => knob === 'whitening' && !more)(window.whitelabAhead.data)")
    offline(shown)
    shown.choose("Variant", "Soft whitening")
    assert shown.live() == scored(layers=(1, 3), whitening="soft", k=200)


def test_numbers_ahead_are_not_asked_for_twice(app, visit):
    source = (Path(whitelab.__file__).parent / "ui" / "live" / "ahead.js").read_text("utf-8")
    asked = visit(app).page.evaluate(
        """async source => {
            const { default: draw } = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })))
            const data = { of: "a", k: 2, knob: "layers", now: 1, scores: {}, more: true }
            let asked = 0
            for (const _ of "ab") {
                draw({ data, setStateValue: () => asked++ })
                await new Promise(later => setTimeout(later, 300))
            }
            return asked
        }""",
        source,
    )
    assert asked == 1


def test_a_click_at_once_a_tap_and_a_key_are_heard_by_the_server(app, visit, scored):
    shown = visit(app)
    page = shown.open("whitening?k=200")
    pills = page.locator(f'{SIDEBAR} [aria-label="Layers, averaged"] button')

    def tap(pill):
        box, finger = pill.bounding_box(), page.context.new_cdp_session(page)
        at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        finger.send("Input.synthesizeTapGesture", at | {"gestureSourceType": "touch"})

    acts = {
        (1, 6): lambda: pills.nth(6).click(),  # a hand that was nowhere near
        (6,): lambda: tap(pills.nth(1)),
        (3, 6): lambda: (pills.nth(3).focus(), pills.nth(3).press("Space")),
        (2, 3, 6): lambda: (page.evaluate("window.whitelabAhead.asking = true"), pills.nth(2).click()),  # in its turn
    }
    for layers, act in acts.items():
        page.mouse.move(0, 0)
        shown.settle()
        act()
        shown.await_live(scored(layers=layers, k=200))
        line = page.locator("text=/layers? [0-9+ ]+ ·/").last.inner_text()
        assert f"{' + '.join(map(str, layers))} · mean pooling" in line


def test_a_layers_number_is_painted_without_the_server(app, visit, scored):
    shown = visit(app, width=1280)
    page = shown.open("layers?k=200")
    pill = page.locator(f'{SIDEBAR} [aria-label="Layers, averaged"] button').nth(5)
    pill.focus()
    page.wait_for_selector("[data-gain]")
    offline(shown)
    pill.press("Space")
    assert shown.live() == scored(layers=(1, 5), k=200)


def test_a_variant_named_by_hand_in_a_link_is_taken_once_its_knob_rests_without_k_and_another_can_be_chosen(
    app, visit, scored
):
    shown = visit(app)
    shown.open("whitening?whitening=standardize&k=50")
    assert (shown.variant(), shown.live()) == ("Standardised", scored(whitening="standardize"))
    assert shown.page.locator(K).is_disabled()
    shown.choose("Variant", "Centred")
    shown.await_live(scored(whitening="center", k=50))


def test_on_release_the_address_the_pages_and_a_typed_k_follow(app, visit, demo):
    shown = visit(app)
    page, wanted = shown.open("dimensions"), scores(demo)
    page.locator(K).focus()
    page.keyboard.press("PageDown")
    shown.settle()
    k = shown.k()
    assert shown.query()["k"] == [str(k)]
    assert shown.metrics()[f"Spearman at k = {k}"] == shown.live() == wanted[k - 1]
    typed = page.locator(f"{SIDEBAR} .wl-typed")
    typed.fill("77")
    assert shown.live() == wanted[76]
    typed.press("Enter")
    shown.settle()
    assert shown.query()["k"] == ["77"]
    for given, meant in {"1e9": 384, "-3": 1, "76.7": 77, "": 77}.items():
        typed.fill("")
        typed.press_sequentially(given)
        typed.press("Enter")
        expect(typed).to_have_value(str(meant), timeout=PATIENCE * 1000)  # a busy server comes back to it when it can
        shown.settle()
        assert shown.live() == wanted[meant - 1]
    typed.fill("55")
    assert shown.live() == wanted[54]
    typed.press("Escape")  # what was typed is not sent, also when the box is left
    typed.blur()
    shown.settle()
    assert (typed.input_value(), shown.live(), shown.query()["k"]) == ("77", wanted[76], ["77"])
    page.reload()
    shown.complete()
    assert (shown.k(), shown.live()) == (77, wanted[76])


CUTS = (200, 20, 100)


@pytest.mark.parametrize(
    ("name", "width", "ks"),
    [
        *((name, 1440, CUTS) for name in ("overview", "whitening", "layers", "dimensions")),
        *((name, width, CUTS) for name in ("overview", "whitening") for width in (1024, 390)),
        ("overview", 1440, (192, 384, 20)),  # of all directions there is more to say
        ("whitening", 1440, (384, 1, 20)),  # whose headline numbers have the room of a named k, and no more
        ("overview", 390, (384, 192, 20)),
        *((name, 390, (384, 20, 100)) for name in ("anisotropy", "dimensions")),  # whose names grow when k is said
    ],
)
def test_the_charts_stand_still_while_k_moves(app, visit, name, width, ks):
    shown = visit(app, "light", width)
    page = shown.open(f"{name}?k={ks[0]}")
    knob, places = page.locator(f"{STRIP} input" if width == 390 else f"{SIDEBAR} .wl-typed"), []
    for k in ks:
        knob.fill(str(k))
        knob.press("Enter")
        shown.settle()
        charts = page.locator(CHART).evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
        assert len(charts) > 1
        scrolled = page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop")
        places.append([round(top + scrolled) for top in charts])
    assert places == places[:1] * len(places)


@pytest.mark.parametrize(
    ("link", "width", "k"),
    [
        ("whitening", 390, 70),  # the best k, which is said too
        ("whitening?layers=2&whitening=Soft+whitening&k=200", 390, 384),  # in doubt on other sentences
        ("retrieval", 1440, 1),
    ],
)
def test_a_verdict_has_the_room_of_its_longest_words_from_the_start_and_hardly_more(app, visit, link, width, k):
    shown = visit(app, "light", width)
    page = shown.open(link)
    knob, tops = page.locator(f"{STRIP} input" if width == 390 else f"{SIDEBAR} .wl-typed"), []
    first = "document.querySelector('[data-testid=stMain]').scrollTop + document.querySelector('.js-plotly-plot')"
    for setting in (None, k):
        if setting:
            knob.fill(str(setting))
            knob.press("Enter")
            shown.settle()
        tops.append(round(page.evaluate(f"{first}.getBoundingClientRect().top")))
    assert tops[0] == tops[1]
    said = page.locator(".st-key-said-verdict, .st-key-said-ranked")
    words = said.locator("p")
    line = words.evaluate("p => parseFloat(getComputedStyle(p).lineHeight)")
    assert said.bounding_box()["height"] < words.bounding_box()["height"] + 1.5 * line


def test_what_stands_below_a_querys_documents_keeps_the_room_of_their_texts(app, visit):
    shown = visit(app, "light", 390)
    page, tops, apart = shown.open("retrieval?k=87"), [], set()
    heading, formats = page.get_by_role("heading", name="Take it away"), page.locator(".st-key-format")
    for k in (87, 100, 300, 20):  # of which the last ranks worse than raw vectors, which is said
        page.locator(f"{STRIP} input").fill(str(k))
        page.locator(f"{STRIP} input").press("Enter")
        shown.settle()
        scrolled = page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop")
        tops.append(round(heading.bounding_box()["y"] + scrolled))
        apart.add(round(formats.bounding_box()["y"] - heading.bounding_box()["y"]))
    assert tops == sorted(tops)
    assert tops[-1] - tops[0] < 60, "documents have no room of their own"
    assert len(apart) == 1


def test_words_that_are_drawn_in_a_new_element_after_a_wait_have_the_room_of_those_before(app, visit):
    page = visit(app).open("overview")
    said = page.locator(".st-key-said-gains")
    before = said.bounding_box()["height"]
    said.evaluate("one => { const empty = one.cloneNode(); empty.removeAttribute('style'); one.replaceWith(empty) }")
    page.wait_for_function("document.querySelector('.st-key-said-gains').hasAttribute('style')")
    assert said.bounding_box()["height"] == before


def test_beside_vectors_alone_no_number_or_k_of_the_bars_data_stands_at_the_foot_of_the_window(app, visit):
    shown, out = visit(app, "light", 390), io.BytesIO()
    page, strip = shown.open("data"), shown.page.locator(STRIP)
    page.get_by_role("tab", name="Vectors without a model").click()
    assert strip.is_visible()
    np.save(out, np.random.default_rng(0).standard_normal((50, 8)))
    file = {"name": "mine.npy", "mimeType": "application/octet-stream", "buffer": out.getvalue()}
    page.locator(".st-key-vectors-files input").set_input_files(file)
    page.get_by_text("Mean cosine of two vectors").wait_for()
    assert not strip.is_visible()
    page.get_by_role("tab", name="Pasted text").click()
    strip.wait_for()


def test_what_a_page_drawn_anew_still_shows_of_the_run_before_leaves_no_room_in_a_text(app, visit):
    page = visit(app).open("whitening")
    said = page.locator(".st-key-explanation")
    before = said.bounding_box()["height"]
    said.evaluate(  # a warning above moves every block one place on, so that Streamlit shows a chart in it for a moment
        """one => new Promise(done => {
            const old = Object.assign(document.createElement("div"), { style: "height: 600px" })
            old.innerHTML = "<div data-stale=true></div>"
            one.append(old)
            requestAnimationFrame(() => requestAnimationFrame(() => { old.remove(); done() }))
        })"""
    )
    assert said.bounding_box()["height"] == before


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (768, "light")])
def test_while_the_bar_is_closed_number_and_knob_stand_at_the_foot_of_the_window(app, visit, demo, width, scheme):
    shown = visit(app, scheme, width, 844)
    page, wanted = shown.open("?k=100"), scores(demo)
    strip = page.locator(STRIP)
    assert strip.is_visible()
    page.mouse.wheel(0, 4000)
    box = strip.bounding_box()
    assert box["y"] + box["height"] == pytest.approx(844, abs=1)
    assert box["width"] <= width
    assert strip.locator("output").inner_text() == wanted[99]
    strip.locator("input").press("ArrowRight")
    assert strip.locator("output").inner_text() == wanted[100]
    shown.settle()
    assert shown.query()["k"] == ["101"]
    page.locator("[data-testid=stExpandSidebarButton]").click()
    page.locator(LIVE).wait_for()
    assert shown.live() == wanted[100]
    assert not strip.is_visible()


def test_a_finger_on_the_strip_scrolls_up_and_down_and_moves_k_across(app, phone):
    phone.goto(app)
    phone.get_by_text("Show the code").wait_for(state="attached")
    phone.evaluate(STILL, [IDLE, 350])
    slider = phone.locator(f"{STRIP} input")
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2

    def swiped(share, across=0, up=0):
        """From so much of the slider's width on; k and how far the page is scrolled then."""
        x = box["x"] + share * box["width"]
        swipe(phone, (x, middle), (x + across, middle - up))
        phone.evaluate(STILL, [IDLE, 350])
        return int(slider.input_value()), phone.evaluate("document.querySelector('[data-testid=stMain]').scrollTop")

    assert swiped(0.3, up=280, across=20) == (384, 280)
    assert swiped(0.6, up=-100) == (384, 180)
    k, scrolled = swiped(0.25, across=box["width"] / 2, up=5)
    assert (k, scrolled) == (pytest.approx(0.75 * 384, abs=16), 180)
    phone.wait_for_url(f"**/?k={k}")
    tapped, scrolled = swiped(0.5)
    assert (tapped, scrolled) == (pytest.approx(192, abs=2), 180)
    phone.wait_for_url(f"**/?k={tapped}")
