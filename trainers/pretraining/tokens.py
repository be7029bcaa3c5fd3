"""The corpus as one stream of tokens, cut into sequences as it is read."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.core.atomic import atomic_file


@dataclass(frozen=True)
class Special:
    """Ids of the special tokens."""

    cls: int
    sep: int
    pad: int
    mask: int


@dataclass(frozen=True)
class Stream:
    """All texts one after another, each followed by SEP: ``tokens`` ``(T,)`` int32, possibly memory-mapped."""

    tokens: NDArray[np.int32]
    special: Special

    def count(self, length: int) -> int:
        """The number of sequences of ``length`` tokens that the stream is cut into; the last one may be shorter."""
        return -(-len(self.tokens) // (length - 2))

    def whole(self, length: int) -> int:
        """The number of these sequences that need no padding."""
        return len(self.tokens) // (length - 2)

    def rows(self, numbers: NDArray[np.int64], length: int) -> NDArray[np.int32]:
        """Build sequences ``(n, length)`` by number, each as CLS, tokens, SEP, padding."""
        width = length - 2
        rows = np.full((len(numbers), length), self.special.pad, np.int32)
        rows[:, 0] = self.special.cls
        for row, number in zip(rows, numbers, strict=True):
            part = self.tokens[number * width : (number + 1) * width]
            row[1 : 1 + len(part)] = part
            if part[-1] != self.special.sep:
                row[1 + len(part)] = self.special.sep
        return rows


def write_stream(file: Path, texts: Iterable[list[int]], sep: int) -> None:
    """Write the token ids of every text, each followed by SEP, as int32; the file appears once it is complete."""
    with atomic_file(file) as temporary, temporary.open("wb") as handle:
        for ids in texts:
            handle.write(np.array([*ids, sep], np.int32).tobytes())


def read_stream(file: Path, special: Special) -> Stream:
    """Open a file that ``write_stream`` wrote, memory-mapped; an empty file is an empty stream."""
    empty = file.stat().st_size == 0
    return Stream(np.empty(0, np.int32) if empty else np.memmap(file, np.int32, mode="r"), special)


def batch_numbers(step: int, batch_size: int, sequences: int, seed: int) -> NDArray[np.int64]:
    """Numbers ``(batch_size,)`` of the sequences in a step's batch; each epoch reads all sequences in a new order."""
    places = np.arange(step * batch_size, (step + 1) * batch_size)
    epochs = places // sequences
    return np.array(
        [_order(seed, int(epoch), sequences)[place % sequences] for epoch, place in zip(epochs, places, strict=True)]
    )


@lru_cache(maxsize=2)
def _order(seed: int, epoch: int, sequences: int) -> NDArray[np.int64]:
    """An epoch's order of all sequences; cached, since every step of the epoch needs it."""
    return np.random.default_rng([seed, epoch]).permutation(sequences)
