"""The exported model folder runs unchanged under mteb, whose score of a task is whitelab's."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from tiny import build_model, write_pairs

import whitelab
from whitelab.encoding.embeddings import embed_pairs
from whitelab.scoring.fit_scopes import fit_scope
from whitelab.whitening.export import to_sentence_transformers


def task_of(pairs):
    """A task of mteb's of these pairs, on this machine; nothing is fetched."""
    from datasets import Dataset, DatasetDict
    from mteb.abstasks import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata

    class OwnPairs(AbsTaskSTS):
        metadata = TaskMetadata(
            name="OwnPairs",
            description="Pairs made up for a test.",
            type="STS",
            category="t2t",
            modalities=["text"],
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="cosine_spearman",
            dataset={"path": "local/pairs", "revision": "1"},
        )
        max_score = 5

        def load_data(self, **_):
            """The pairs as mteb wants them."""
            columns = {"sentence1": pairs.first, "sentence2": pairs.second, "score": pairs.gold}
            self.dataset = DatasetDict(test=Dataset.from_dict({name: list(values) for name, values in columns.items()}))
            self.data_loaded = True

    return OwnPairs()


@pytest.fixture
def pairs(tmp_path):
    return whitelab.load(str(write_pairs(tmp_path / "pairs.csv")))


@pytest.mark.parametrize("text", ["L1+L3:pca@8", "L-1:zca"])
def test_mteb_gives_an_exported_folder_whitelabs_score(tmp_path, pairs, text):
    from mteb import ResultCache, evaluate

    encoder = whitelab.load_encoder(str(build_model(tmp_path / "model")), device="cpu")
    space, _ = embed_pairs(encoder, pairs)
    setting = whitelab.Setting.parse(text)
    expected = whitelab.score(space, setting)
    (whitener,) = fit_scope(space, setting).whiteners
    layers = expected.setting.layers
    to_sentence_transformers(tmp_path / "out", encoder, layers, "mean", whitener)
    model = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    options = {"co2_tracker": False, "show_progress_bar": False}
    (result,) = evaluate(model, task_of(pairs), cache=ResultCache(tmp_path / "cache"), **options).task_results
    (entry,) = result.scores["test"]
    assert 100 * entry["cosine_spearman"] == pytest.approx(expected.spearman, abs=1e-2)
    assert entry["main_score"] == entry["cosine_spearman"]
    raw = whitelab.score(space, setting.raw).spearman
    assert abs(raw - expected.spearman) > 0.1  # the map counts
    assert np.isfinite(expected.spearman)
