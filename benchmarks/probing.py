"""The regressions of a transfer task, solved together against scikit-learn's one after another."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.harness import Options, Table, figures, side_by_side
from benchmarks.spaces import asked, tasks
from whitelab import whitening
from whitelab.encoding.embed import embed
from whitelab.encoding.encoders import load_encoder
from whitelab.probe.classifiers import GRID, TEST_GRID, best_c, stratified
from whitelab.statistics.moments import Moments

FOLDS, SEED = 10, 1111
APART = 1  # of so many folds scikit-learn's time is taken


def probing(options: Options) -> list[Table]:
    """The choice of C over ten folds, SentEval's grids, two classes and six, raw and whitened."""
    texts = list(dict.fromkeys(asked(tasks(options.data))))[: options.pick(300, 5_000)]
    x = embed(load_encoder("bundled"), texts)[0][-1].float()
    white = whitening.fit("pca", Moments.of(x), None)(x).float().numpy()
    length = np.array([len(text) for text in texts])
    runs, rows, chosen = {}, [], {}
    for classes, grid in ((2, GRID), (6, TEST_GRID)):
        y = np.searchsorted(np.quantile(length, np.linspace(0, 1, classes + 1)[1:-1]), length)
        splits = stratified(y, FOLDS, SEED)
        for words, seen in (("raw", x.numpy()), ("whitened", white)):
            name = f"{classes} classes, {words}"
            runs[name] = lambda seen=seen, y=y, splits=splits, grid=grid, name=name: chosen.update(
                {name: best_c(seen, y, splits, grid)}
            )
            runs[f"{name}, scikit-learn"] = lambda seen=seen, y=y, splits=splits[:APART], grid=grid: one_by_one(
                seen, y, splits, grid
            )
    scale = {name: FOLDS / APART for name in runs if name.endswith("scikit-learn")}
    timings = side_by_side(runs, options.pick(1, 3), scale, warm=False)
    for name in (name for name in runs if name not in scale):
        apart = f"{name}, scikit-learn"
        rows.append(
            (name, timings.of(name).text(" s"), timings.of(apart).text(" s"), timings.ratio(apart, name).text(" x"))
        )
    return [
        Table(
            f"The best C in {FOLDS} folds of {len(texts):,} sentences, {x.shape[1]} dimensions",
            ("", "all regressions together", "scikit-learn, one after another", "times whitelab's"),
            tuple(rows),
            (
                "The classes are lengths of sentences, as many of each. Grids of C as SentEval has them, six values "
                "and seven; scikit-learn (lbfgs, its tolerance of 1e-4, each C from the one before) is timed in one "
                f"fold and the time scaled. C found: {', '.join(figures(one) for one in chosen.values())}.",
            ),
        )
    ]


def one_by_one(x: np.ndarray, y: np.ndarray, splits, grid) -> None:
    """scikit-learn's way, as whitelab went until it solved them together."""
    for learnt, unseen in splits:
        model = LogisticRegression(max_iter=1000, warm_start=True)
        for c in grid:
            model.set_params(C=c).fit(x[learnt], y[learnt]).score(x[unseen], y[unseen])
