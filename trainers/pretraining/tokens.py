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


@dataclass(frozen=True)
class Cut:
    """A stream cut into sequences of at most ``length`` tokens: sequence i holds the tokens ``starts[i]:ends[i]``.

    ``starts`` and ``ends`` are ``(n,)`` int64.
    """

    stream: Stream
    length: int
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self.starts)

    def rows(self, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        """Build sequences ``(n, length)`` by number, each as CLS, tokens, SEP, padding."""
        special = self.stream.special
        rows = np.full((len(numbers), self.length), special.pad, np.int32)
        rows[:, 0] = special.cls
        for row, start, end in zip(rows, self.starts[numbers], self.ends[numbers], strict=True):
            part = self.stream.tokens[start:end]
            row[1 : 1 + len(part)] = part
            if part[-1] != special.sep:
                row[1 + len(part)] = special.sep
        return rows


def join_texts(stream: Stream, length: int) -> Cut:
    """Cut the stream every ``length`` - 2 tokens, wherever a text ends; only the last sequence may be shorter."""
    starts = np.arange(0, len(stream.tokens), length - 2)
    return Cut(stream, length, starts, np.minimum(starts + length - 2, len(stream.tokens)))


def part_texts(stream: Stream, length: int) -> Cut:
    """Cut the stream so that no sequence holds two texts; a text of more than ``length`` - 2 tokens is cut further."""
    ends = np.flatnonzero(stream.tokens == stream.special.sep)  # no text contains SEP
    starts = np.concatenate([[0], ends[:-1] + 1])[: len(ends)]
    pieces = -(-(ends - starts) // (length - 2))
    place = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    first = np.repeat(starts, pieces) + place * (length - 2)
    return Cut(stream, length, first, np.minimum(first + length - 2, np.repeat(ends, pieces)))


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
