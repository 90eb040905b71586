"""The code that "Show the code" shows. The law: run in a fresh Python it prints the page's number, at every knob."""

from whitelab.corpus.fitting import CORPUS
from whitelab.scoring.setting import EVERY, OWN_SENTENCES, TOKENS
from whitelab.ui.sidebar import own_data
from whitelab.ui.sidebar.workspace import Workspace

LIVE = "score = whitelab.score(space, setting)\nprint(score.spearman)\nprint(score.line())\n"


def recipe(chosen: Workspace, body: str = "") -> str:
    """The lines that open the workspace's space and name its setting, a page's `body`, and the live score."""
    setting = f"setting = whitelab.Setting.parse({str(chosen.setting)!r})\n"
    parts = ["import whitelab\n", opening(chosen) + fitting(chosen) + setting]
    return "\n".join([*parts, *([body] if body else []), LIVE])


def opening(chosen: Workspace) -> str:
    """The lines that make the workspace's `pairs` and `space`."""
    if chosen.given:
        return f"{chosen.own.code}\n"
    return (
        f"{_pairs(chosen)}\n"
        f"encoder = {loading(chosen)}\n"
        f"space, report = whitelab.embed_pairs(encoder, pairs{pooling(chosen)}, store=whitelab.Store())\n"
    )


def loading(chosen: Workspace) -> str:
    """The expression that loads the workspace's encoder."""
    options = "" if chosen.dtype == "float32" else f", dtype={chosen.dtype!r}"
    options += ", allow_bin=True" if chosen.model.allow_bin else ""
    return f"whitelab.load_encoder({chosen.model.name!r}{options})"


def _pairs(chosen: Workspace) -> str:
    if chosen.own:
        return chosen.own.code
    data, lenient = chosen.data, ", keep_going=True" if chosen.data.lenient else ""
    return f"pairs = whitelab.load({data.source!r}, {data.task!r}, {data.split!r}{lenient})"


def fitting(chosen: Workspace) -> str:
    """The lines that give the space the text its maps are fitted on; none where its own sentences are enough."""
    fit = chosen.setting.fit
    if fit in (*OWN_SENTENCES, TOKENS, EVERY):
        return ""
    if own_data.fit_text(chosen.fit_key):
        text = (
            "from collections import Counter\n\nfrom whitelab.datasets import read_sentences\n\n"
            f"text = Counter(read_sentences({fit!r}, keep_going=True).text)  # your file, by its path\n"
        )
    elif fit.startswith(CORPUS):
        return f"space = space.with_text({fit!r}, whitelab.corpus_rows({fit.removeprefix(CORPUS)!r}))\n"
    else:
        lenient = ", keep_going=True" if chosen.data.lenient else ""
        text = f"text = whitelab.scope_text({fit!r}, {data_in_code(chosen)}, {chosen.data.task!r}{lenient})\n"
    rows = f"whitelab.embed_scope(encoder, text{pooling(chosen)}, store=whitelab.Store())"
    return f"{text}space = space.with_text({fit!r}, {rows})\n"


def pooling(chosen: Workspace) -> str:
    """The pooling as one argument more in code; nothing where it is the usual one."""
    return "" if chosen.setting.pooling == "mean" else f", {chosen.setting.pooling!r}"


def data_in_code(chosen: Workspace) -> str:
    """The data as an argument in code."""
    return "whitelab.datasets.hold(pairs)" if chosen.own else repr(chosen.data.source)
