"""Text from data stays text: in Markdown, in HTML, in formulas and in the labels of charts."""

import csv
from urllib.parse import urlencode

import pytest

pytestmark = pytest.mark.browser

PIECES = (
    '<img src="https://evil.example/a.png" onerror="window.ran = 1">',
    "<script>window.ran = 2</script><b>bold</b>",
    '<a href="javascript:window.ran = 3">press</a> <iframe src=//evil.example></iframe>',
    "![seen](https://evil.example/b.png) [press](javascript:window.ran=4)",
    r"$\frac{a}{b}$ $$x^2$$ \(y\)",
    "**loud** _soft_ ~~gone~~ `code` # head",
    ":red[red] :material/home: :rainbow[all]",
    "%{x} %{customdata[0]}<extra>more</extra><br>line",
    "| a | b | > quote &lt;b&gt; &#60;i&#62;",
)
# What text would have become: elements that the app itself never puts where text of data stands.
BECAME = """() => ({
    ran: window.ran ?? 0,
    elements: [...document.querySelectorAll('img[src*=evil], iframe[src*=evil], a[href^="javascript:"], a[href*=evil]')]
        .map(e => e.outerHTML),
    formulas: [...document.querySelectorAll('[data-testid=stApp] .katex')].map(e => e.textContent)
        .filter(text => /frac.a..b.|x\\^2x/.test(text)),
    words: [...document.querySelectorAll('strong, b, em, del, code, h1, h2, h3, span[style*=color], tspan[style]')]
        .filter(e => /^(bold|loud|soft|gone|code|head|red|all|press)$/.test(e.textContent.trim()))
        .map(e => `${e.outerHTML} in ${e.closest('[data-testid]')?.parentElement.textContent.slice(0, 200)}`),
})"""
NOTHING = {"ran": 0, "elements": [], "formulas": [], "words": []}
# Pixels of points of a chart whose label is a sentence, one for each piece.
PLACES = """(g, pieces) => { const box = g.querySelector('.nsewdrag')?.getBoundingClientRect(), l = g._fullLayout
    if (!box) return []
    const points = g._fullData.flatMap(
        t => [].concat(t.text ?? []).map((text, i) => [String(text), t.x?.[i], t.y?.[i]]))
    return pieces.map(piece => points.find(([text, x, y]) => text.includes(piece) && y !== undefined))
        .filter(one => one).map(([, x, y]) => [box.x + l.xaxis.d2p(x), box.y + l.yaxis.d2p(y)]) }"""
SAID = ("onerror", "&lt;b&gt;bold", "javascript", "frac", "**loud**", ":red[red]", "customdata[0]")


@pytest.fixture
def folder(tmp_path):
    """Pairs whose sentences, file and columns try to be more than text."""
    place = tmp_path / "pairs"
    place.mkdir()
    with (place / "$x^2$ **loud** :red[red] `code`.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("one **loud** <b>bold</b>", "two $x^2$", "three :red[red]"))
        for number in range(120):
            piece, other = PIECES[number % len(PIECES)], PIECES[number * 7 % len(PIECES)]
            rows.writerow((f"{piece} {number}", f"{number} men {other}", number % 6))
    return place


def test_sentences_names_and_notes_of_data_never_become_markup(app, visit, folder):
    shown, labels = visit(app), ""
    asked = {"data": str(folder), "layers": 1, "k": 20}
    tabs = {"Projection": {}, "Neighbours": {"inspect": "men"}}
    for name in ("", "data", "whitening", "uniformity", "advise", *tabs):
        if name and name not in tabs:
            shown.follow(name)
        else:
            more = {"space": name} | tabs[name] if name else {}
            shown.open(("anisotropy?" if name else "?") + urlencode(asked | more))
        for closed in shown.page.locator("details:not([open]) > summary").all():
            if closed.is_visible():
                closed.click()
        shown.settle()
        assert shown.page.evaluate(BECAME) == NOTHING, name
        for chart in (one for one in shown.charts() if one.evaluate(PLACES, SAID)):
            chart.scroll_into_view_if_needed()
            for x, y in chart.evaluate(PLACES, SAID):
                shown.page.mouse.move(0, 0)
                chart.locator(".hoverlayer text").first.wait_for(state="detached")
                shown.page.mouse.move(x, y)
                chart.locator(".hoverlayer text").first.wait_for()
                assert shown.page.evaluate(BECAME) == NOTHING, name
                labels += chart.locator(".hoverlayer").text_content()
    assert all(word in labels for word in ('="window.ran = 1"', "<b>bold</b>", ":red[red]", "frac"))  # as written
    assert shown.outside == []
