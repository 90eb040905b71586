"""Which sentences a step takes, as token ids: a seeded permutation an epoch, nothing sorted, nothing weighted."""

from array import array
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import torch
from jaxtyping import Int
from torch import Tensor

from whitelab.encoding.encoders import Encoder
from whitelab.encoding.pooling import padded

# A batch goes through the encoder in parts of sentences of similar length, so that a short one is not padded to the
# longest of the batch. Of 64 sentences of 14 tokens on average, half of what is computed would be padding; in parts of
# 16 it is a tenth. A GPU would rather have them at once.
PART = {"cpu": 16, "cuda": 256, "mps": 64}

# Sentences are tokenised so many at a time: until its ids are kept, a sentence takes some 5 kB.
_AT_A_TIME = 4096


def derived(*keys: int | str) -> int:
    """A seed made of `keys`: equal for equal keys, unrelated for others."""
    return int.from_bytes(blake2b(repr(keys).encode(), digest_size=7).digest())


class TokenRows(Sequence):
    """Token ids of many sentences, end to end in four bytes each; a row is made a list when it is asked for.

    No two rows are equal; `keys` are their digests.
    """

    def __init__(self) -> None:
        self._ids, self._ends, self.keys = array("i"), array("q", [0]), set()

    def add(self, row: Sequence[int]) -> bool:
        """Take a row after those there are, unless it is one of them; whether it was taken."""
        ids = array("i", row)
        key = blake2b(ids.tobytes(), digest_size=16).digest()
        if key in self.keys:
            return False
        self.keys.add(key)
        self._ids.extend(ids)
        self._ends.append(len(self._ids))
        return True

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, i: int) -> list[int]:
        if not 0 <= i < len(self):
            raise IndexError(f"i={i} must lie between 0 and {len(self) - 1}")
        return self._ids[self._ends[i] : self._ends[i + 1]].tolist()

    @property
    def nbytes(self) -> int:
        """Bytes of the ids and of where each row ends."""
        return sum(one.itemsize * len(one) for one in (self._ids, self._ends))


class Batches:
    """The batches of a run, numbered from 0; batch `number` depends on the seed and its number alone.

    Sentences that give the same tokens, by letter case or in what is cut off, are one: as two they would be each
    other's negatives. `repeated` counts those left out for it, `truncated` all that were cut.

    Every epoch is a permutation of the unique sentences; the last, which would be smaller, is left out, because losses
    that compare within a batch change with its size. So a run that is resumed needs no state to go on.
    """

    def __init__(self, encoder: Encoder, sentences: Sequence[str], size: int, seed: int, max_length: int):
        self._encoder = encoder.cut_to(max_length)
        texts = [text for text in dict.fromkeys(sentence.strip() for sentence in sentences) if text]
        self.ids, first, self.truncated = _tokenized(self._encoder, texts)
        if len(first) < size:
            raise ValueError(f"batch={size} must lie between 2 and the corpus's {len(first)} unique sentences, as read")
        self.repeated = len(texts) - len(first)
        self.pad = encoder.tokenizer.pad_token_id or 0
        self.part = PART[encoder.device]
        self.size, self.seed = size, seed
        self.per_epoch = len(first) // size
        self.fingerprint = blake2b("\n".join(first).encode("utf-8", "replace"), digest_size=16).hexdigest()
        self._order = lru_cache(maxsize=2)(self._permutation)

    @property
    def count(self) -> int:
        """Unique sentences."""
        return len(self.ids)

    def shared(self, sentences: Sequence[str]) -> int:
        """How many of its sentences are among `sentences`, as the encoder reads them here."""
        return len(self.ids.keys & _tokenized(self._encoder, sentences)[0].keys)

    def rows(self, number: int) -> list[int]:
        """The sentences of a batch."""
        epoch, place = divmod(number, self.per_epoch)
        return self._order(epoch)[place * self.size : (place + 1) * self.size]

    def _permutation(self, epoch: int) -> list[int]:
        generator = torch.Generator().manual_seed(derived(self.seed, "order", epoch))
        return torch.randperm(self.count, generator=generator).tolist()

    def parts(
        self, rows: Sequence[int]
    ) -> tuple[list[tuple[Int[Tensor, "p t"], Int[Tensor, "p t"]]], Int[Tensor, "b"]]:
        """`rows` in parts of similar length, each (ids, mask) padded on the right, and each row's place in them."""
        order = sorted(range(len(rows)), key=lambda i: len(self.ids[rows[i]]))
        lists = [[self.ids[rows[i]] for i in order[at : at + self.part]] for at in range(0, len(order), self.part)]
        places = torch.empty(len(rows), dtype=torch.long)
        places[torch.tensor(order)] = torch.arange(len(rows))
        return [padded(part, self.pad) for part in lists], places


def _tokenized(encoder: Encoder, texts: Sequence[str]) -> tuple[TokenRows, list[str], int]:
    """The token ids of `texts`, the first text of each, and how many were cut. Raises ValueError for one without."""
    found, first, truncated = TokenRows(), [], 0
    for start in range(0, len(texts), _AT_A_TIME):
        some = texts[start : start + _AT_A_TIME]
        rows, cut = encoder.tokenize(some)
        if [] in rows:
            raise ValueError(f"sentences must hold text, got {some[rows.index([])]!r}, which has no token")
        first += [text for text, row in zip(some, rows, strict=True) if found.add(row)]
        truncated += len(cut)
    return found, first, truncated
