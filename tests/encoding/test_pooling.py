"""Laws of pooling: a mean over exactly the tokens the mask keeps; SBERT-WK token by token."""

import pytest
import reference
import torch
from torch.testing import assert_close

from whitelab.encoding.pooling import (
    POOLING_LABELS,
    POOLINGS,
    check_pooling,
    pool,
    pool_cls,
    pool_last,
    pool_mean,
    pool_wk,
)

HIDDEN = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
MASK = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]])


def test_the_mean_is_over_the_tokens_the_mask_keeps():
    expected = torch.stack([HIDDEN[i, : MASK[i].sum()].sum(0) / MASK[i].sum() for i in range(3)])
    assert_close(pool_mean(HIDDEN, MASK), expected)


def test_what_stands_in_the_padding_does_not_matter_but_tokens_do():
    other = torch.where(MASK[..., None].bool(), HIDDEN, 1e6)
    assert_close(pool_mean(other, MASK), pool_mean(HIDDEN, MASK))
    assert not torch.allclose(pool_mean(HIDDEN), pool_mean(HIDDEN, MASK))


def test_no_mask_is_a_mask_of_ones():
    assert_close(pool_mean(HIDDEN), pool_mean(HIDDEN, torch.ones(3, 5, dtype=torch.int64)))


def test_a_row_without_tokens_is_the_zero_vector():
    assert pool_mean(HIDDEN, torch.zeros_like(MASK)).abs().max() == 0


def test_cls_is_the_first_token():
    assert torch.equal(pool_cls(HIDDEN, MASK), HIDDEN[:, 0])


def test_last_is_the_last_token_the_mask_keeps_on_whichever_side_the_padding_is():
    expected = torch.stack([HIDDEN[0, 2], HIDDEN[1, 4], HIDDEN[2, 0]])
    assert torch.equal(pool_last(HIDDEN, MASK), expected)
    assert torch.equal(pool_last(HIDDEN, MASK.flip(1)), HIDDEN[:, -1])
    assert torch.equal(pool_last(HIDDEN), HIDDEN[:, -1])


def test_half_precision_is_accumulated_in_float32():
    hidden = torch.full((1, 4096, 1), 30.0, dtype=torch.float16)
    hidden[0, ::2] = 10.0
    assert pool_mean(hidden).item() == 20.0
    for one in POOLINGS.values():
        assert one(hidden, None).dtype == torch.float32


def test_pooling_commutes_with_the_mean_of_layers():
    other = HIDDEN.flip(0) * 2
    assert_close(pool_mean((HIDDEN + other) / 2, MASK), (pool_mean(HIDDEN, MASK) + pool_mean(other, MASK)) / 2)


def test_arguments_are_left_alone():
    hidden, mask = HIDDEN.clone(), MASK.clone()
    for one in POOLINGS.values():
        one(hidden, mask)
    assert torch.equal(hidden, HIDDEN)
    assert torch.equal(mask, MASK)


def test_an_unknown_pooling_is_told_the_known_ones():
    assert check_pooling("cls") == "cls"
    plain = [*POOLINGS, "wk"]
    assert list(POOLING_LABELS) == [*plain, *(f"unit_{name}" for name in plain)]
    with pytest.raises(ValueError, match="pooling='max' must be one of mean, cls, last, wk"):
        check_pooling("max")


def states(layers, tokens=6, dim=16, seed=1):
    """States [l, 3, t, d] of three sentences that change from layer to layer by steps of different sizes."""
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(1, 3, tokens, dim, generator=generator)
    sizes = 0.2 + torch.rand(layers, 3, tokens, 1, generator=generator)
    return start + (sizes * torch.randn(layers, 3, tokens, dim, generator=generator)).cumsum(dim=0) / 2


@pytest.mark.parametrize("layers", [1, 2, 3, 5, 7, 13])
def test_sbert_wk_of_every_layer_is_the_papers_token_by_token(layers):
    hidden = states(layers)
    found = pool_wk(hidden)
    assert (found.shape, found.dtype) == ((3, layers, 16), torch.float32)
    for layer in range(layers):
        for sentence in range(3):
            expected = reference.sbert_wk(hidden[: layer + 1, sentence].double().numpy())
            assert_close(found[sentence, layer], torch.from_numpy(expected).float(), atol=1e-5, rtol=1e-5)


def test_sbert_wk_of_a_layer_does_not_see_the_layers_after_it_nor_the_last_token():
    hidden = states(13)
    found = pool_wk(hidden)
    for layer in range(13):
        assert_close(pool_wk(hidden[: layer + 1])[:, -1], found[:, layer])
    changed = hidden.clone()
    changed[:, :, -1] = 7
    assert torch.equal(pool_wk(changed), found)
    changed[12, :, 0] = 7
    assert_close(pool_wk(changed)[:, :12], found[:, :12])
    assert (pool_wk(changed)[:, 12] - found[:, 12]).abs().max() > 0.1


def test_sbert_wk_scales_and_turns_with_the_states():
    hidden = states(9)
    turn = torch.linalg.qr(torch.randn(16, 16, generator=torch.Generator().manual_seed(2)))[0]
    assert_close(pool_wk(3 * hidden @ turn), 3 * pool_wk(hidden) @ turn, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("layers", [1, 2, 4, 8])
def test_sbert_wk_of_layers_that_do_not_differ_is_the_mean_of_the_tokens(layers):
    hidden = states(1).expand(layers, -1, -1, -1)
    assert_close(pool_wk(hidden)[:, -1], hidden[0, :, :-1].mean(dim=1), atol=1e-5, rtol=1e-5)


def test_sbert_wk_keeps_a_single_token_and_takes_a_state_that_lies_between_others():
    assert_close(pool_wk(states(1, tokens=1))[:, 0], states(1, tokens=1)[0, :, 0])
    hidden = states(8, dim=2)  # five states in a plane: nothing is new
    assert pool_wk(hidden).isfinite().all()


def test_opposite_layers_give_numbers():
    hidden = states(8)
    hidden[1::2] *= -1  # every mean cosine of a window that has as many of either sign is about 0 or below
    assert pool_wk(hidden).isfinite().all()


def test_a_pooling_of_all_layers_is_that_of_each():
    hidden = tuple(states(3))
    for name in POOLINGS:
        assert torch.equal(pool(name, hidden)[:, 1], POOLINGS[name](hidden[1]))
    assert torch.equal(pool("wk", hidden), pool_wk(torch.stack(hidden)))
