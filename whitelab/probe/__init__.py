"""What frozen embeddings are good for beyond STS: neighbours, a linear classifier, SentEval, a cosine threshold.

Four classifiers on texts or pairs with labels (`datasets.load_labelled`), each on any layers, raw or whitened:
`knn` and `linear` as W-MSE evaluates, `senteval` as SentEval and with it WhitenedCSE (Table 2), `threshold` as
WhiteningBERT (Table 3). By default the whitening sees the texts the classifier learns from and no other, so that
nothing of a test row, not even its text, decides its score.

`how` says which classifier, `rows` what it learns from, `scoring` makes one score, `many` a whole run.
"""

from whitelab.probe.many import AVERAGE, DEFAULT, averages, embed_texts, probes, tried_probe, with_published
from whitelab.probe.options import CLASSIFIERS, FITS, How, usual
from whitelab.probe.rows import Turn, features, fit_map, occurrences, turns
from whitelab.probe.scores import PairMeasures, ProbeScore
from whitelab.probe.scoring import probe

__all__ = [
    "AVERAGE",
    "CLASSIFIERS",
    "DEFAULT",
    "FITS",
    "How",
    "PairMeasures",
    "ProbeScore",
    "Turn",
    "averages",
    "embed_texts",
    "features",
    "fit_map",
    "occurrences",
    "probe",
    "probes",
    "tried_probe",
    "turns",
    "usual",
    "with_published",
]
