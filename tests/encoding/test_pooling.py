"""Laws of pooling: a mean over exactly the tokens the mask keeps."""

import pytest
import torch
from torch.testing import assert_close

from whitelab.encoding.pooling import POOLING_LABELS, POOLINGS, check_pooling, pool_cls, pool_last, pool_mean

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
    for pool in POOLINGS.values():
        assert pool(hidden, None).dtype == torch.float32


def test_pooling_commutes_with_the_mean_of_layers():
    other = HIDDEN.flip(0) * 2
    assert_close(pool_mean((HIDDEN + other) / 2, MASK), (pool_mean(HIDDEN, MASK) + pool_mean(other, MASK)) / 2)


def test_arguments_are_left_alone():
    hidden, mask = HIDDEN.clone(), MASK.clone()
    for pool in POOLINGS.values():
        pool(hidden, mask)
    assert torch.equal(hidden, HIDDEN)
    assert torch.equal(mask, MASK)


def test_an_unknown_pooling_is_told_the_known_ones():
    assert check_pooling("cls") == "cls"
    assert POOLING_LABELS.keys() == POOLINGS.keys()
    with pytest.raises(ValueError, match="pooling='max' must be one of mean, cls, last"):
        check_pooling("max")
