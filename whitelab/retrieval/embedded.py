"""Documents and queries of a retrieval set, embedded once in all layers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from whitelab.base.checks import check_is
from whitelab.base.lazy import cached_property
from whitelab.base.progress import Progress, silent
from whitelab.datasets import RetrievalSet
from whitelab.encoding.embed import EmbedReport, embed, prompt_left_out
from whitelab.encoding.embeddings import LayerEmbeddings, LayerRows, Origin, origin_of
from whitelab.encoding.encoders import Encoder
from whitelab.retrieval.metrics import Relevant
from whitelab.scoring.setting import Setting, check_is_setting
from whitelab.store.embedding_store import Store

DOCUMENT_TOKENS = 256  # where documents are cut unless one says otherwise; a sentence is shorter

# What a map is fitted on; any other name is that of other text. A setting that says nothing (`task`) means the
# corpus, which is there before the first query comes.
FITS = {"corpus": "The corpus", "queries": "The queries", "both": "Corpus and queries"}
_NO_SCOPE = ("splits", "cross")  # of pairs, without a meaning here


@dataclass(frozen=True, eq=False)
class RetrievalSpace:
    """Embeddings of a retrieval set.

    `space` holds every unique text once, in every layer, with the judgements as its pairs (a query, a document, the
    grade as gold), and carries the corpus, the queries and both as text to fit on. Document i is its row
    `documents[i]`, query i its row `queries[i]`. `truncated` counts the documents that are longer than the model reads,
    `truncated_queries` such queries.
    """

    data: RetrievalSet
    space: LayerEmbeddings
    documents: Int[Tensor, "n"]
    queries: Int[Tensor, "q"]
    truncated: int
    truncated_queries: int = 0

    @cached_property
    def relevant(self) -> Relevant:
        """The judgements with a grade above 0."""
        return Relevant(self._found("query"), self._found("grade"), len(self.queries))

    @cached_property
    def document(self) -> Int[Tensor, "j"]:
        """The document of each judgement in `relevant`."""
        return self._found("document")

    @cached_property
    def own(self) -> Int[Tensor, "q"]:
        """The document that each query is itself, which has no place in its ranking, as in BEIR; -1 where none is."""
        return torch.from_numpy(self.data.own)

    @cached_property
    def by_id(self) -> Int[Tensor, "n"]:
        """The place of each document among all, ordered by their ids: the earlier one wins a tie."""
        places = torch.empty(len(self.documents), dtype=torch.int64)
        order = sorted(range(len(self.documents)), key=self.data.document_ids.__getitem__)
        places[torch.tensor(order)] = torch.arange(len(order))
        return places

    def on(self, setting: Setting) -> Setting:
        """The setting as it is on these embeddings: layers by their numbers, `task` read as `corpus`.

        Raises ValueError as `Setting.on` and `check_setting`.
        """
        check_setting(setting)
        usual = setting.fit == "task" or not setting.fits
        return setting.with_(fit="corpus", k=setting.k).on(self.space) if usual else setting.on(self.space)

    def carries(self, setting: Setting) -> bool:
        """Whether the text that a setting's map is fitted on is here."""
        return not setting.fits or setting.fit == "task" or setting.fit in self.space.texts

    def with_text(self, name: str, rows: LayerRows) -> "RetrievalSpace":
        """The same embeddings carrying `rows` as the text `name` to fit on. Raises ValueError as there."""
        return replace(self, space=self.space.with_text(name, rows))

    def _found(self, name: str) -> Tensor:
        return torch.from_numpy(getattr(self.data, name)[self.data.grade > 0])


def check_retrieval_space(space) -> RetrievalSpace:
    """Return `space` if it is one. Raises TypeError for all else, such as a set that is not embedded."""
    return check_is(space, "space", RetrievalSpace, "embed_retrieval(encoder, data) gives")


def check_data(data) -> RetrievalSet:
    """Return `data` if it is a retrieval set. Raises TypeError for all else, such as the name that one is read by."""
    return check_is(data, "data", RetrievalSet, "load_retrieval() gives")


def check_setting(setting: Setting) -> Setting:
    """Return `setting` where it has a meaning for queries; ValueError for a scope of pairs, and for an aggregate."""
    check_is_setting(setting)
    if setting.aggregate != "all":
        raise ValueError(f"aggregate={setting.aggregate!r} has no meaning here: a score is a mean over queries")
    if setting.fit in _NO_SCOPE:
        scopes = ", ".join(FITS)
        raise ValueError(f"fit={setting.fit!r} has no meaning without pairs; use {scopes} or name other text")
    return setting


def embed_retrieval(
    encoder: Encoder,
    data: RetrievalSet,
    pooling: str = "mean",
    *,
    store: Store | None = None,
    progress: Progress = silent,
) -> tuple[RetrievalSpace, EmbedReport]:
    """Embed every unique document and query once, in all layers. Raises as `embed`, and TypeError for another `data`.

    The set's prompts are put before them; one that the model's makers put before every other text has no place here and
    is not noted. The encoder says where texts are cut: see `for_documents`.
    """
    values, report = embed(encoder, check_data(data).sentences, pooling, store=store, progress=progress)
    report = replace(report, notes=tuple(one for one in report.notes if one != prompt_left_out(encoder)))
    return with_judgements(values, data, origin_of(encoder, data, pooling), report.cut), report


def for_documents(encoder: Encoder) -> Encoder:
    """The encoder reading `DOCUMENT_TOKENS` tokens of a text, or as many as it can where that is less."""
    check_is(encoder, "encoder", Encoder, "load_encoder('bundled') gives")
    return encoder.cut_to(min(DOCUMENT_TOKENS, encoder.limit))


def with_judgements(
    values: Float[Tensor, "l s d"], data: RetrievalSet, origin: Origin | None = None, cut: Sequence[int] = ()
) -> RetrievalSpace:
    """`values`, whose rows are `data.sentences`, with documents, queries and judgements; `cut` are the rows of texts
    longer than the model reads.

    Raises ValueError for another number of rows, TypeError for what is no tensor or no retrieval set.
    """
    check_is(values, "values", Tensor, "embed(encoder, data.sentences) gives")
    check_data(data)
    if values.shape[1] != len(data.sentences):
        raise ValueError(f"values must have s={len(data.sentences)} rows, got {values.shape[1]}")
    documents, queries = torch.from_numpy(data.document_rows), torch.from_numpy(data.query_rows)
    space = LayerEmbeddings(
        values,
        data.query_rows[data.query],
        data.document_rows[data.document],
        data.grade,
        torch.zeros(len(data.grade), dtype=torch.int64),
        (data.task,),
        origin or Origin(data=data.source, task=data.task, split=data.split),
        {name: LayerRows(values, _counts(rows, values.shape[1])) for name, rows in _scopes(documents, queries)},
    )
    truncated = (int(np.isin(rows, cut).sum()) for rows in (data.document_rows, data.query_rows))
    return RetrievalSpace(data, space, documents, queries, *truncated)


def _scopes(documents: Int[Tensor, "n"], queries: Int[Tensor, "q"]) -> Sequence[tuple[str, Tensor]]:
    return tuple(zip(FITS, (documents, queries, torch.cat([documents, queries])), strict=True))


def _counts(rows: Int[Tensor, "m"], size: int) -> Float[Tensor, "s"]:
    return torch.bincount(rows, minlength=size).to(torch.float64)
