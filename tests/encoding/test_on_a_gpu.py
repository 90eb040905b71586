"""Laws of encoding on a GPU: the vectors of the CPU, in whatever memory there is."""

import pytest
import torch
from tiny import SENTENCES, TEXTS, build_model

from whitelab.base.machine import available_memory
from whitelab.encoding import encoders
from whitelab.encoding.embed import embed
from whitelab.encoding.encoders import load_encoder
from whitelab.store.embedding_store import Store

pytestmark = pytest.mark.cuda
ASKED = [*TEXTS, *reversed(TEXTS), TEXTS[3]]
MANY = [f"{one}, {other}" for one in SENTENCES for other in SENTENCES[::4]]


@pytest.mark.parametrize("architecture", ["bert", "mpnet", "t5"])
@pytest.mark.parametrize("pooling", ["mean", "cls", "unit_mean", "wk"])
def test_every_layer_is_that_of_the_cpu(models, tmp_path, architecture, pooling):
    there = load_encoder(models(architecture), device="cuda")
    wanted, _ = embed(load_encoder(models(architecture), device="cpu"), ASKED, pooling)
    store = Store(tmp_path / "store")
    kept, report = embed(there, ASKED, pooling, store=store)
    assert (report.encoded, report.notes) == (len(TEXTS), ())
    for found in (kept, embed(there, ASKED, pooling)[0]):
        assert found.device.type == "cpu"
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
    again, report = embed(there, ASKED, pooling, store=store)
    assert report.encoded == 0
    assert torch.equal(again, kept)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_short_types_are_close_to_float32(models, dtype):
    exact, _ = embed(load_encoder(models(), device="cpu"), TEXTS)
    rough, _ = embed(load_encoder(models(), device="cuda", dtype=dtype), TEXTS)
    assert torch.nn.functional.cosine_similarity(exact, rough, dim=-1).min() > 0.995
    assert not torch.equal(exact, rough)


def test_a_batch_that_does_not_fit_is_encoded_in_smaller_parts(tmp_path, monkeypatch, memory_of_gpu):
    encoder = load_encoder(str(build_model(tmp_path / "deep", layers=12)), device="cuda")
    sizes, forward = [], encoders.Encoder.forward
    embed(encoder, MANY[:100])
    torch.cuda.reset_peak_memory_stats()
    wanted, _ = embed(encoder, MANY)
    least, most = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()

    def counted(self, ids, pooling="mean"):
        sizes.append(len(ids))
        return forward(self, ids, pooling)

    monkeypatch.setattr(encoders.Encoder, "forward", counted)
    with memory_of_gpu((least + most) / 2**21):
        found, _ = embed(encoder, MANY)
    assert sum(sizes) > len(MANY)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)


def test_what_torch_keeps_for_its_next_tensors_counts_as_free():
    before = available_memory("cuda")
    held = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    assert available_memory("cuda") <= before - 2**30
    del held
    assert torch.cuda.memory_reserved() >= 2**30
    assert abs(available_memory("cuda") - before) < 2**28
