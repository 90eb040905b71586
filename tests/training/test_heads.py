"""Laws of WhitenedCSE's head: every view whitened by itself, in groups that are drawn anew."""

import pytest
import torch
from torch.testing import assert_close

from whitelab.training.objectives import OBJECTIVES, WhitenedHead, whiten

from .doing import BATCH, DIM, seeded, views


def sgw(**settings):
    """The head with float64 parameters."""
    torch.manual_seed(0)
    return WhitenedHead(DIM, "shuffled_group", **({"views": 3, "groups": 4} | settings)).double()


def test_every_view_is_whitened_by_itself_with_a_permutation_of_its_own():
    h = views(3, d=DIM)
    z = sgw().whitened(h, seeded(7))
    generator = seeded(7)
    for view in range(3):
        order = torch.randperm(DIM, generator=generator)
        white = whiten(h[view], "shuffled_group", groups=4, permutation=order, ddof=0)
        assert_close(z[view], white)
        for group in order.view(4, 3):
            assert_close(torch.cov(z[view][:, group].T, correction=0), torch.eye(3, dtype=z.dtype), atol=1e-9, rtol=0)


def test_pieces_of_the_batch_are_those_of_the_released_code():
    """Rows go sentence by sentence, so one piece holds b / v sentences with all their views."""
    h = views(3, d=DIM)
    z = sgw(chunks="batch").whitened(h, seeded(7))
    generator = seeded(7)
    rows = torch.stack([h[view, i] for i in range(BATCH) for view in range(3)])
    white = []
    for piece in rows.split(BATCH):
        order = torch.randperm(DIM, generator=generator)
        white.append(whiten(piece, "shuffled_group", groups=4, permutation=order, ddof=0))
    white = torch.cat(white)
    for i in range(BATCH):
        for view in range(3):
            assert_close(z[view, i], white[3 * i + view])


def test_one_encoding_whitened_several_times_gives_views_that_differ():
    h = views(1, d=DIM)
    z = sgw()(h, seeded(7))
    assert z.shape == (3, BATCH, DIM)
    assert_close(z, sgw()(h.expand(3, -1, -1), seeded(7)))
    assert (z[0] - z[1]).abs().max() > 0.01


@pytest.mark.parametrize("chunks", ["views", "batch"])
def test_rows_have_length_one_before_they_are_whitened_only_on_request(chunks):
    h = views(3, d=DIM)
    lengths = torch.rand(3, BATCH, 1, generator=seeded(1), dtype=torch.float64) + 0.5
    raw, unit = sgw(chunks=chunks), sgw(chunks=chunks, normalize=True)
    assert_close(unit.whitened(h, seeded(7)), raw.whitened(h / h.norm(dim=-1, keepdim=True), seeded(7)))
    assert_close(unit.whitened(h * lengths, seeded(7)), unit.whitened(h, seeded(7)))
    assert (raw.whitened(h * lengths, seeded(7)) - raw.whitened(h, seeded(7))).abs().max() > 0.1
    spec = "whitenedcse:groups=4"
    assert [OBJECTIVES["whitenedcse"].head(f"{spec}{rest}", DIM).normalize for rest in ("", ",normalize=1")] == [0, 1]


def test_the_head_is_whitening_then_a_layer_then_tanh():
    head, h = sgw(), views(3, d=DIM)
    layer = head.head.linear
    assert_close(head(h, seeded(7)), torch.tanh(head.whitened(h, seeded(7)) @ layer.weight.T + layer.bias))


def test_the_head_keeps_its_running_moments_in_its_state():
    head, h = sgw(momentum=0.9), views(3, d=DIM)
    head(h, seeded(7))
    state = {name: value.clone() for name, value in head.state_dict().items()}
    expected = head(h, seeded(8))
    resumed = sgw(momentum=0.9)
    resumed.load_state_dict(state)
    assert torch.equal(resumed(h, seeded(8)), expected)
    assert state["running.batches"] == 3
    assert not torch.allclose(sgw(momentum=0.9)(h, seeded(8)), expected)
