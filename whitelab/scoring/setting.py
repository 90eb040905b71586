"""THE value: what a visitor, a command or a table's row chose, as one thing, and the text that names it.

    [POOLING/]LAYERS[:WHITENING][@K][ aggregate=HOW][ fit=WHAT], or the last two in the other order

    L6    cls/L-1    mean/L1+L-1:soft:gamma=0.5@256    mean/L1:pca@100 aggregate=mean fit=cross

It is parsed and printed here and nowhere else; whatever is left at its default is not printed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from urllib.parse import quote, unquote

from whitelab import whitening
from whitelab.base.checks import check_choice, check_is, check_layers, check_several, is_whole
from whitelab.base.user_folders import name_of
from whitelab.base.wording import inside, layers_in_words, spaced
from whitelab.corpus.fitting import CORPUS
from whitelab.encoding.embeddings import (
    EVERY,
    OWN_SENTENCES,
    TOKENS,
    LayerEmbeddings,
    LayerRows,
    MeasuredRows,
    Origin,
    check_space,
)
from whitelab.encoding.pooling import GIVEN, UNIT, check_pooling
from whitelab.statistics import correlation

# What a map is fitted on: every sentence of the task (WhiteningBERT), all its splits (BERT-whitening's "target"), or
# half of the pairs, scoring the other half, both ways, or the word vectors that sentences are means of, or all vectors
# that were given in a model's place. Any other name is that of other text (the role of NLI there).
FIT_SCOPES = {
    "task": "The task's sentences",
    "splits": "All splits of the task",
    "cross": "Cross-fitted halves",
    "tokens": "The task's words, by frequency",
    EVERY: "All vectors, in a pair or not",
}

_GRAMMAR = re.compile(
    r"(?:(?P<pooling>\w+)/)?(?P<layers>L-?\d+(?:\+L-?\d+)*)(?::(?P<whitening>[^@]+?))?(?:@(?P<k>\d+))?"
    r"(?:\s+aggregate=(?P<aggregate>\w+))?(?:\s+fit=(?P<fit>.+?))?(?:\s+aggregate=(?P<last>\w+))?",
    re.DOTALL,
)

TABLE1 = "cls/L-1;mean/L-1;mean/L1;mean/L1+L-1;mean/L1+L-1:pca"


@dataclass(frozen=True)
class Setting:
    """Everything that is chosen about a score, but for the embeddings it is of.

    `layers` are averaged; they may count from the last (-1), so that a setting fits models of any depth. `whitening` is
    a spec with every parameter written out, `k` keeps its top-k eigen-directions (None: all), `fit` names the
    sentences it is fitted on (`FIT_SCOPES`, or other text that the space carries), `aggregate` says how the
    scores of subsets become one, `pooling` what the embeddings must have been made with.
    Raises ValueError for names, parameters and k that do not exist.
    """

    layers: tuple[int, ...] = (-1,)
    whitening: str = "none"
    k: int | None = None
    pooling: str = "mean"
    fit: str = "task"
    aggregate: str = "all"

    def __post_init__(self) -> None:
        if isinstance(self.layers, str) or not isinstance(self.layers, Iterable):
            raise ValueError(f"layers={self.layers!r} must be several numbers, such as (1, -1)")
        object.__setattr__(self, "layers", tuple(self.layers))
        if not self.layers or len(set(self.layers)) < len(self.layers):
            raise ValueError(f"layers={list(self.layers)} must name at least one layer, and none twice")
        if not all(map(is_whole, self.layers)):
            raise ValueError(f"layers={list(self.layers)} must be whole numbers")
        object.__setattr__(self, "layers", tuple(map(int, self.layers)))
        object.__setattr__(self, "whitening", whitening.canonical(self.whitening))
        object.__setattr__(self, "k", whitening.check_k(self.k, self.whitening, None))
        if self.pooling != GIVEN:
            check_pooling(self.pooling)
        check_choice(self.aggregate, "aggregate", correlation.AGGREGATES)
        if not self.fit:
            raise ValueError(f"fit='' must be one of {', '.join(FIT_SCOPES)} or name other text")

    @classmethod
    def parse(cls, text: str) -> "Setting":
        """`L1+L-1:pca@256 fit=cross` -> Setting. Raises ValueError for any other text, TypeError for what is none."""
        check_is(text, "setting", str, "'L1+L6:pca'")
        parts = _GRAMMAR.fullmatch(text.strip())
        unread = text if not parts else parts["whitening"] or ""  # the name of a text may hold anything
        empty = re.search(r"\s((?:fit|aggregate)=)(?=\s|$)", unread)
        if empty or parts and (parts["fit"] or "")[:1].isspace():  # a blank of the name's own is written %20
            raise ValueError(f"setting={text.strip()!r} must say what {empty[1] if empty else 'fit='} is")
        if not parts:
            raise ValueError(f"setting={text.strip()!r} must look like L6, cls/L-1, L1+L6:pca or L1+L-1:pca@256")
        if parts["aggregate"] and parts["last"]:
            raise ValueError(f"setting={text.strip()!r} must name aggregate once")
        given = {name: parts[name] for name in ("whitening", "pooling", "aggregate") if parts[name]}
        given |= {"aggregate": parts["last"]} if parts["last"] else {}
        given |= {"k": int(parts["k"])} if parts["k"] else {}
        given |= {"fit": unquote(parts["fit"])} if parts["fit"] else {}
        return cls(layer_numbers(parts["layers"]), **given)

    def __str__(self) -> str:
        usual = Setting()
        text = f"{self.pooling}/{self.named_layers}"
        text += "" if self.whitening == usual.whitening else f":{self.whitening}"
        text += "" if self.k is None else f"@{self.k}"
        text += "" if self.aggregate == usual.aggregate else f" aggregate={self.aggregate}"
        return text + ("" if self.fit == usual.fit else f" fit={_quoted(self.fit)}")

    @property
    def named_layers(self) -> str:
        """`L1+L-1`."""
        return "+".join(f"L{layer}" for layer in self.layers)

    @property
    def named_map(self) -> str:
        """`pca, k = 256`."""
        return self.whitening + (f", k = {self.k}" if self.k is not None else "")

    @property
    def fits(self) -> bool:
        """Whether anything is fitted: not for raw vectors, nor for their first coordinates."""
        return whitening.variant(self.whitening).fits

    @property
    def fits_other_text(self) -> bool:
        """Whether its map is fitted on sentences that are not the task's own."""
        return self.fits and self.fit not in (*OWN_SENTENCES, TOKENS)

    @property
    def raw(self) -> "Setting":
        """The same layers without whitening, so that nothing is fitted."""
        return replace(self, whitening="none", k=None, fit="task")

    def with_(self, **changes) -> "Setting":
        """The same setting but for `changes`; a `k` goes with a whitening that takes none."""
        if "whitening" in changes and "k" not in changes and not whitening.variant(changes["whitening"]).takes_k:
            changes["k"] = None
        return replace(self, **changes)

    def directions(self, dim: int) -> int:
        """Along how many directions vectors of `dim` numbers may lie under it: k, or all where nothing is cut.

        Cross-fitted halves keep k directions each, and where those are fitted not the same ones: 2 k, at most d.
        """
        return min(dim, (self.k or dim) * (2 if self.fit == "cross" and self.fits else 1))

    def numbers(self, n_layers: int) -> tuple[int, ...]:
        """The layers in a model that has `n_layers`, the embedding layer among them."""
        return tuple(dict.fromkeys(layer + n_layers if layer < 0 else layer for layer in self.layers))

    def on(self, space: LayerEmbeddings) -> "Setting":
        """The setting as it is on `space`: `sized`.

        Raises ValueError as `sized`, and for another pooling than the space was made with, TypeError as `check_space`.
        """
        if self.pooling != check_space(space).origin.pooling:
            raise ValueError(f"pooling={self.pooling!r} must be {space.origin.pooling!r}, that of the embeddings")
        return self.sized(space.n_layers, space.dim)

    def sized(self, n_layers: int, dim: int) -> "Setting":
        """The setting as it is for `n_layers` of `dim`: layers by their numbers, ascending, parameters held against d.

        All that a model decides of it, so that it can be refused before a text is embedded. Raises ValueError for
        layers, a `k` or a parameter that do not exist there.
        """
        spec = str(whitening.parse(self.whitening, dim))
        whitening.check_k(self.k, spec, dim)
        if any(not -n_layers <= layer < n_layers for layer in self.layers):
            last = f"{n_layers - 1}, the last layer, or between -{n_layers} and -1"
            raise ValueError(f"layers={list(self.layers)} must lie between 0 and {last}")
        return replace(self, layers=check_layers(self.numbers(n_layers), n_layers), whitening=spec)


_GIVES = "Setting.parse('L1+L6:zca') gives"


def check_is_setting(value, name: str = "setting") -> Setting:
    """Return `value` if it is a setting. Raises TypeError for all else, such as the text that names one."""
    return check_is(value, name, Setting, _GIVES)


def check_settings(values) -> tuple[Setting, ...]:
    """Return `values` as a tuple of settings. Raises TypeError for one setting or text, ValueError for none."""
    return check_several(values, "settings", Setting, _GIVES)


def made_by(pooling: str) -> str:
    """How vectors were made, in a protocol's line: `mean pooling, length 1`."""
    if pooling == GIVEN:
        return "as given"
    return f"{pooling.removeprefix(UNIT)} pooling" + (", length 1" if pooling.startswith(UNIT) else "")


def _quoted(fit: str) -> str:
    """`fit` such that settings can be listed with semicolons, have no blanks at their ends and nothing after them."""
    return re.sub(r"[%;]|^\s+|\s+$|\s(?=\s*aggregate=\w+\s*$)", lambda part: quote(part[0], safe=""), fit)


def layer_numbers(text: str) -> tuple[int, ...]:
    """`1,6`, or as a setting names them `L1+L6`. Raises ValueError for what holds anything but whole numbers."""
    parts = re.split(r"\s*[,+]\s*|\s+", text.strip())
    return tuple(int(part[1:] if part[:1] in ("L", "l") else part) for part in parts)


def parse_settings(text: str, n_layers: int | None = None) -> tuple[Setting, ...]:
    """`table1`, or settings separated by semicolons, each once.

    For a model of `n_layers`, `L*` stands for each layer in turn, as in `L*:pca`. Raises ValueError for each that
    `Setting.parse` refuses, all in one, and for no setting at all, TypeError for what is no text.
    """
    check_is(text, "settings", str, "'L6; L1+L6:pca'")
    text, settings, refused = TABLE1 if text.strip() == "table1" else text, [], []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        head, *options = re.split(r"(?=\s)", part, maxsplit=1)  # a star in the name of a text is none
        layers: Sequence = range(n_layers) if n_layers is not None and "L*" in head else ("*",)
        try:
            settings += [Setting.parse("".join([head.replace("L*", f"L{layer}"), *options])) for layer in layers]
        except ValueError as error:
            refused.append(str(error) if repr(part) in str(error) else f"in {part!r}, {error}")
    if refused:
        raise ValueError("; ".join(refused) + ", or be 'table1'" * ("table" in text.lower()))
    if not settings:
        raise ValueError(f"settings={text!r} must hold at least one setting, such as 'L6;L1+L6:pca', or be 'table1'")
    return tuple(dict.fromkeys(settings))


def scope_name(fit: str, texts: Mapping[str, LayerRows | MeasuredRows] | None = None) -> str:
    """A scope as it may leave the machine: of other text the name of its file or folder, with no path before it.

    Of a corpus among the `texts` that a space carries the beginning of its digest stands behind the name, because
    folders of embedded text are often called alike.
    """
    before = CORPUS if fit.startswith(CORPUS) else ""
    text = (texts or {}).get(fit)
    mark = f"-{text.mark}" if isinstance(text, MeasuredRows) and text.mark else ""
    return before + name_of(fit.removeprefix(CORPUS)) + mark


def scope_in_words(
    fit: str,
    labels: Mapping[str, str] = FIT_SCOPES,
    texts: Mapping[str, LayerRows | MeasuredRows] | None = None,
) -> str:
    """A scope inside a sentence: `the task's sentences`, of other text than `labels` know its `scope_name`."""
    return inside(labels[fit]) if fit in labels else scope_name(fit, texts)


@dataclass(frozen=True)
class Protocol:
    """A setting and what it was applied to. Two scores are comparable when their protocols are equal."""

    setting: Setting
    origin: Origin

    def as_dict(self) -> dict:
        """A flat JSON-ready record."""
        setting, origin = self.setting, asdict(self.origin)
        record = {name: origin[name] for name in ("model", "data", "task", "split", "pooling")}
        record |= {"layers": list(setting.layers), "whitening": setting.whitening, "k": setting.k}
        record |= {"fit": setting.fit, "aggregate": setting.aggregate}
        return record | {name: origin[name] for name in ("dtype", "max_length", "text")} | {"combine": "mean"}

    def line(
        self,
        sentences: int | None = None,
        rank: int | None = None,
        isotropy: float | None = None,
        gamma: float | None = None,
    ) -> str:
        """The protocol in one line, as shown under every score."""
        setting, origin = self.setting, self.origin
        fitted = ""
        if setting.whitening != "none" and sentences is not None:
            count = spaced(sentences)
            words = {
                "task": f"fitted on the task's {count} sentence occurrences",
                "splits": f"fitted on the {count} sentence occurrences of all splits",
                "tokens": f"fitted on the {count} tokens of the task's sentences",
                EVERY: f"fitted on all {count} vectors",
                "cross": f"cross-fitted on halves of {count} sentence occurrences",
            }
            on = words.get(setting.fit, f"fitted on the {count} sentences of {scope_name(setting.fit)}")
            fitted = f" {on}" if setting.fits else ", nothing fitted"
            details = [f"rank {rank}"] if rank is not None else []
            details += [f"γ {gamma:.2f}"] if gamma is not None else []
            details += [f"held-out isotropy {isotropy:.2f}"] if isotropy is not None else []
            fitted += f" ({', '.join(details)})" if details else ""
        made = made_by(origin.pooling)
        cut = "" if origin.max_length is None else f" · at most {origin.max_length} tokens"
        return (
            f"{origin.model} · {layers_in_words(setting.layers)} · {made} · {origin.data} · "
            f"{setting.named_map}{fitted} · aggregate {setting.aggregate} · {origin.dtype}{cut}"
        )
