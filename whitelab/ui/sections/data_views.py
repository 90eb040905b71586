"""A task's pairs to look at: how many on what scale, as charts, subset by subset, and searched for words."""

import numpy as np
import streamlit as st

from whitelab import figures
from whitelab.base.wording import quantity, spaced
from whitelab.datasets import SentencePairs
from whitelab.figures import heights
from whitelab.ui.sidebar.workspace import Workspace
from whitelab.ui.widgets.address import linked
from whitelab.ui.widgets.chart import chart, rounded_table
from whitelab.ui.widgets.choice import choice
from whitelab.ui.widgets.metric import Metric, headlines

FOUND = 200  # pairs in the searchable table


def numbers(chosen: Workspace, pairs: SentencePairs, lengths: np.ndarray | None) -> None:
    """How many, and on what scale; `lengths` are the words of each sentence, None where there is no text."""
    gold, n = pairs.gold, len(pairs.sentences)
    repeated = 2 * pairs.n_pairs - n
    subsets, different = len(pairs.subset_names), spaced(len(np.unique(gold)))
    headlines(
        Metric(
            "Pairs",
            spaced(pairs.n_pairs),
            quantity(subsets, "subset"),
            help="Each pair is two sentences and a gold score.",
        ),
        Metric(
            "Different vectors" if lengths is None else "Different sentences",
            spaced(n),
            quantity(repeated, "repetition"),
            help="A map is fitted on every occurrence, so repeated sentences count as often as they occur.",
        ),
        Metric(
            "Gold scores",
            f"{gold.min():.3g} to {gold.max():.3g}",
            f"mean {gold.mean():.2f}, {different} different",
            help="Spearman reads their order only. Pairs of equal gold share a rank.",
        ),
        Metric(
            "Dimensions",
            str(chosen.model.dim),
            quantity(chosen.model.n_layers, "layer"),
            help="d and l of the vectors given.",
        )
        if lengths is None
        else Metric(
            "Words a sentence",
            f"{np.median(lengths):g}",
            f"median, at most {lengths.max()}",
            help="A word is letters, digits and underscores in a row.",
        ),
    )


def charts(pairs: SentencePairs, lengths: np.ndarray | None) -> None:
    """Gold scores, and lengths where there is text."""
    columns = [st.container()] if lengths is None else st.columns(2)
    with columns[0]:
        st.header("Gold scores")
        chart(
            figures.gold_histogram(pairs.gold),
            "gold",
            lambda: [{"pair": i, "gold": value} for i, value in enumerate(pairs.gold.tolist(), start=1)],
        )
    if lengths is not None:
        with columns[1]:
            st.header("Length of the sentences")
            chart(
                figures.length_histogram(lengths),
                "lengths",
                lambda: [{"sentence": i, "words": value} for i, value in enumerate(lengths.tolist(), start=1)],
            )


def subsets(pairs: SentencePairs) -> None:
    """Every subset in a line."""
    members = [np.flatnonzero(pairs.subset == number) for number in range(len(pairs.subset_names))]
    number = st.column_config.NumberColumn(format="%.2f")
    rounded_table(
        [
            {
                "Subset": name,
                "Pairs": len(own),
                "Lowest gold": float(pairs.gold[own].min()),
                "Mean gold": float(pairs.gold[own].mean()),
                "Highest gold": float(pairs.gold[own].max()),
            }
            for name, own in zip(pairs.subset_names, members, strict=True)
            if len(own)
        ],
        dict.fromkeys(("Lowest gold", "Mean gold", "Highest gold"), number),
        alt="The subsets with their pairs and gold scores",
        printed={"Pairs": spaced},
        height="content" if len(members) <= 12 else heights.table(12),
    )


def search(pairs: SentencePairs) -> None:
    """The pairs whose sentences hold what is typed."""
    left, right = st.columns([3, 2])
    with left:
        wanted = st.text_input("Find in the sentences", **linked("find", ""), placeholder="A word or a part of one")
    with right:
        order = choice("Order", ["as in the file", "highest gold", "lowest gold"], key="order", bind="query-params")
    wanted = (wanted or "").casefold()
    hits = [
        row
        for row, (a, b) in enumerate(zip(pairs.first, pairs.second, strict=True))
        if not wanted or wanted in a.casefold() or wanted in b.casefold()
    ]
    if order in ("highest gold", "lowest gold"):
        hits.sort(key=lambda row: pairs.gold[row], reverse=order == "highest gold")
    rows = hits[:FOUND]
    columns = {
        "Gold": [float(pairs.gold[row]) for row in rows],
        "First sentence": [pairs.first[row] for row in rows],
        "Second sentence": [pairs.second[row] for row in rows],
        "Pair": [row + 1 for row in rows],
    }
    if len(pairs.subset_names) > 1:
        columns["Subset"] = [pairs.subset_names[pairs.subset[row]] for row in rows]
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    sentence = 152  # on a phone both stand beside the gold score; where there is more room all columns grow
    rounded_table(
        columns,
        {
            "Gold": number(width=50, format="%.2f"),
            "First sentence": text(width=sentence),
            "Second sentence": text(width=sentence),
            "Pair": number(width=50),
            "Subset": text(width=90),
        },
        row_height=heights.WRAPPED,
        height=min(540, heights.table(pairs.n_pairs, heights.WRAPPED)),
        alt="The pairs, with both sentences and gold",
    )
    shown = min(FOUND, len(hits))
    st.caption(
        f"{spaced(len(hits))} of {quantity(pairs.n_pairs, 'pair')}"
        + (f", the first {shown} of them shown." if shown < len(hits) else ".")
    )
