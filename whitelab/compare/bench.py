"""One model on one task, scored under any preset: every text is read and every vector computed once."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from whitelab.base.machine import is_out_of_memory
from whitelab.base.progress import Progress, silent
from whitelab.base.wording import cut_note
from whitelab.compare.presets import Preset
from whitelab.datasets import Problem, SentencePairs, load
from whitelab.encoding.embed import EmbedReport, embed, unknown_note
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows, origin_of, with_pairs
from whitelab.encoding.encoders import LONGEST, Encoder, OutputEncoder, StaticEncoder
from whitelab.scoring.fit_text import fit_rows
from whitelab.scoring.score import Score, reversal, score
from whitelab.scoring.setting import Setting
from whitelab.statistics.correlation import Judged
from whitelab.store.embedding_store import Store

# What is done to a sentence before it is tokenised. SentEval splits at blanks and joins the words again.
TEXTS: dict[str, Callable[[str], str]] = {"strip": str.strip, "words": lambda text: " ".join(text.split())}

# What a user can cause and mend; anything else is a fault of ours and goes up.
_EXPECTED = (ValueError, OSError, MemoryError)


class Unscored(ValueError):
    """Why there is no score, in one line."""


def tried(work: Callable[[], Any]) -> Any:
    """The result of `work()`, or one line that says why there is none."""
    try:
        return work()
    except (*_EXPECTED, RuntimeError) as error:
        if is_out_of_memory(error):
            return "not enough memory"
        if not isinstance(error, _EXPECTED):
            raise
        return " ".join(str(error).split())


@dataclass(eq=False)
class Bench:
    """One model on one task of `data`. What cannot be had is tried once and raises Unscored each time.

    `notes` is what a user should know of the pairs and embeddings so far, `problems` the rows that were left out.
    """

    encoder: Encoder
    data: str
    task: str
    store: Store | None = None
    keep_going: bool = False
    progress: Progress = silent
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    _held: dict[tuple, Any] = field(default_factory=dict, repr=False)

    def score(self, setting: Setting, preset: Preset) -> Score:
        """The score of a setting under a preset, whose `fit` names its text."""
        result = tried(lambda: score(*self.scored(setting, preset)))
        if isinstance(result, str):
            raise Unscored(result)
        return result

    def scored(self, setting: Setting, preset: Preset) -> tuple[LayerEmbeddings, Setting]:
        """The space, carrying what the preset fits on, and the setting as the preset has it."""
        setting = preset.applied(setting)
        setting.sized(self.encoder.n_layers, self.encoder.dim)  # refused before the task is embedded
        space = self.space(setting.pooling, preset)
        if setting.fits_other_text:
            space = self._once(
                ("fitted", setting.fit, setting.pooling, self._split(preset), preset.text, self._length(preset)),
                lambda: space.with_text(setting.fit, self._fit_text(setting.pooling, preset)),
            )
        return space, setting

    def pairs(self, split: str) -> SentencePairs:
        """The pairs of a split."""
        return self._once(("pairs", split), lambda: self._loaded(split))

    def space(self, pooling: str, preset: Preset) -> LayerEmbeddings:
        """The task's embeddings under the preset's split, text and length."""
        pairs, decided = self.pairs(self._split(preset)), (preset.text, self._length(preset))
        origin = replace(origin_of(self.encoder, pairs, pooling), max_length=decided[1], text=preset.text)
        key = ("space", self._split(preset), pooling, *decided)

        def made() -> LayerEmbeddings:
            space = with_pairs(self._embedded(pairs.sentences, pooling, *decided), pairs, origin)
            said = reversal(space, Setting(pooling=pooling))
            self._note(*[said] * bool(said))
            return space

        return self._once(key, made)

    def _loaded(self, split: str) -> SentencePairs:
        pairs = load(self.data, self.task, split, keep_going=self.keep_going)
        self._note(*pairs.notes)
        self.problems = tuple(dict.fromkeys((*self.problems, *pairs.problems)))
        return pairs

    def _fit_text(self, pooling: str, preset: Preset) -> LayerRows:
        """The embedded text of the preset's fit, with how often each sentence counts."""
        decided = preset.text, self._length(preset)

        def embedded(sentences: tuple[str, ...]) -> Tensor:
            return self._embedded(sentences, pooling, *decided)

        make = partial(fit_rows, preset.fit, embedded, self.data, self.task, self.keep_going)
        return self._once(("fit text", preset.fit, pooling, *decided), make)

    def judged(self, preset: Preset) -> Judged:
        """What a score under this preset is held against."""
        pairs = self.pairs(split := self._split(preset))
        what = torch.tensor(pairs.gold), torch.tensor(pairs.subset), len(pairs.subset_names)
        return self._once(("judged", split), lambda: Judged(*what))  # one for all cells that keep it

    def _once(self, key: tuple, make: Callable[[], Any]) -> Any:
        if key not in self._held:
            self._held[key] = tried(make)
        found = self._held[key]
        if isinstance(found, str):
            raise Unscored(found)
        return found

    def _split(self, preset: Preset) -> str:
        return self._once(("split", preset.whole), lambda: (preset.split_of(self.data, self.task),))[0]

    def _length(self, preset: Preset) -> int:
        own = self.encoder.max_length if isinstance(self.encoder, OutputEncoder) else LONGEST
        return min(preset.max_length or own, self.encoder.limit)

    def _embedded(self, sentences: tuple[str, ...], pooling: str, text: str, length: int) -> Float[Tensor, "l n d"]:
        texts = [TEXTS[text](one) for one in sentences]
        values, report = embed_cut(self.encoder, texts, pooling, length, store=self.store, progress=self.progress)
        cut = (cut_note(report.truncated, "sentence", length),) * (report.truncated > 0)
        self._note(*report.notes, *cut)
        return values

    def _note(self, *notes: str) -> None:
        self.notes = tuple(dict.fromkeys((*self.notes, *notes)))


def embed_cut(
    encoder: Encoder,
    sentences: list[str],
    pooling: str,
    max_length: int,
    *,
    store: Store | None = None,
    progress: Progress = silent,
) -> tuple[Float[Tensor, "l n d"], EmbedReport]:
    """Embeddings of `sentences` cut to `max_length`, which need not be the encoder's own, and a report.

    Equal to `embed` with an encoder of that length. A sentence that neither cuts has the same vector under
    both, so only the others are encoded apart and most vectors are shared in the store. Word embeddings are
    averaged anew: they may depend on all sentences, and are quick.
    """
    other = encoder if max_length == encoder.max_length else encoder.cut_to(max_length)
    if other is encoder or isinstance(encoder, StaticEncoder):
        return embed(other, sentences, pooling, store=store, progress=progress)
    values, report = embed(encoder, sentences, pooling, store=store, progress=progress)
    longer = max((encoder, other), key=lambda one: one.max_length)
    shorter = min(encoder.max_length, max_length)
    apart = [i for i, ids in enumerate(longer.tokenize(sentences)[0]) if len(ids) > shorter]
    if not apart:
        return values, report  # neither cuts any
    some = [sentences[i] for i in apart]
    values[:, apart], more = embed(other, some, pooling, store=store, progress=progress)
    said = unknown_note(len(more.unknown), other.name)  # of all of them, already
    again = [one for one in more.notes if one != said]
    cut, notes = tuple(apart[i] for i in more.cut), tuple(dict.fromkeys((*report.notes, *again)))
    return values, replace(report, cut=cut, notes=notes)
