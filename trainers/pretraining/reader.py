"""Reads the sequences of a job: masked batches to train and validate on, and whole ones to diagnose."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from batchwright.core.errors import InputError
from trainers.common.passes import send
from trainers.pretraining.corpus import TRAINING, VALIDATION, special_tokens
from trainers.pretraining.job import PretrainJob
from trainers.pretraining.model import Sequences
from trainers.pretraining.tokens import Cut, batch_numbers, join_texts, part_texts, read_stream

VALIDATED, DIAGNOSED = 128, 64
"""Held-out sequences to validate on, and to diagnose, at most."""
REPLACED = 0.8
RANDOM = 0.1


class Masked(NamedTuple):
    """Sequences of one rank, and how many tokens encoder and decoder predict in those of all ranks."""

    sequences: Sequences
    chosen: int
    wanted: int


class Reader:
    """Reads the job's token streams, cut as its parameters say.

    Raises:
        InputError: there is too little text to validate on.
    """

    def __init__(self, job: PretrainJob, tokenizer: PreTrainedTokenizerBase) -> None:
        self._job, self._params = job, job.params
        self.special = special_tokens(tokenizer, str(job.corpus))
        self._marks = np.array(tokenizer.all_special_ids)
        self._ordinary = np.setdiff1d(np.arange(len(tokenizer)), self._marks).astype(np.int32)
        cut, length = part_texts if job.params.one_text else join_texts, job.params.max_length
        self._training = cut(read_stream(job.corpus / TRAINING, self.special), length)
        validation = read_stream(job.corpus / VALIDATION, self.special)
        self._validation, self._joined = cut(validation, length), join_texts(validation, length)
        self._unpadded = len(validation.tokens) // (length - 2)
        if self._unpadded < 2 or len(self._validation) < 2:
            raise InputError(
                f"only {len(validation.tokens)} tokens to validate on, fewer than two sequences of {length}; add "
                f"pairs, or raise held_out from {job.params.held_out}"
            )

    def batch(self, place: int, rows: slice) -> Masked:
        """Read ``rows`` of the batch at ``place``, counted from the first step of the first run."""
        numbers = batch_numbers(place, self._params.batch_size, len(self._training), self._job.seed)
        return self.read(self._training, numbers, np.random.default_rng([self._job.seed, place]), rows)

    def held_out(self) -> Masked:
        """Read the sequences to validate on, with masks that are always the same."""
        numbers = _spread(len(self._validation), VALIDATED)
        return self.read(self._validation, numbers, np.random.default_rng(0), slice(None))

    def unpadded(self) -> Tensor:
        """Read held-out sequences ``(n, max_length)`` without padding; texts are joined to fill them."""
        rows = self._joined.rows(_spread(self._unpadded, DIAGNOSED))
        return torch.from_numpy(rows).long().to(self._job.device)

    def counts(self) -> Tensor:
        """How often each token is in the training text, up to the last one that is; special tokens count as absent."""
        counts = np.bincount(self._training.stream.tokens)
        counts[self._marks[self._marks < len(counts)]] = 0
        return torch.from_numpy(counts)

    def read(self, cut: Cut, numbers: NDArray[np.int64], generator: np.random.Generator, rows: slice) -> Masked:
        """Read the sequences of ``rows``, and count the tokens that encoder and decoder predict in all rows.

        Every rank draws the masks of the whole batch, so that they do not depend on the number of ranks.
        """
        tokens = cut.rows(numbers)
        maskable = ~np.isin(tokens, self._marks)
        share, mask = self._params.mlm_probability, self.special.mask
        read, chosen = mask_tokens(tokens, maskable, share, mask, self._ordinary, generator)
        present = tokens != self.special.pad
        arrays = (tokens.astype(np.int64), read.astype(np.int64), chosen, present)
        sequences = Sequences(*(torch.from_numpy(each[rows]) for each in arrays))
        return Masked(sequences, max(1, int(chosen.sum())), int(present[:, 1:].sum()))


def choose(batch: Sequences, places: NDArray[np.int64], device: str) -> Sequences:
    """Take the sequences at ``places`` to ``device``, without columns that hold only padding."""
    part = Sequences(*(each[places] for each in batch))
    longest = int(part.present.sum(dim=1).max())
    return Sequences(*(send(each[:, :longest], torch.device(device)) for each in part))


def mask_tokens(
    tokens: NDArray[np.int32],
    maskable: NDArray[np.bool_],
    share: float,
    mask: int,
    ordinary: NDArray[np.int32],
    generator: np.random.Generator,
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Mask ``share`` of each sequence's ``maskable`` tokens, as BERT does.

    Of m maskable tokens, floor(share m) or one more are chosen, share m on average. Of these, 80 % become ``mask``,
    10 % become one of the ``ordinary`` tokens ``(V',)``, and 10 % stay as they are.

    Returns:
        The tokens as the encoder reads them, and which ones were chosen, as bool; both have the shape ``(n, l)`` of
        ``tokens``.
    """
    counts = np.floor(share * maskable.sum(axis=1) + generator.random(len(tokens))).astype(np.int64)
    keys = np.where(maskable, generator.random(tokens.shape), np.inf)
    ranks = keys.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    chosen: NDArray[np.bool_] = (ranks < counts[:, None]) & maskable
    fate = generator.random(tokens.shape)
    others = generator.choice(ordinary, tokens.shape)
    read = np.where(chosen & (fate < REPLACED), np.int32(mask), tokens)
    read = np.where(chosen & (fate >= REPLACED) & (fate < REPLACED + RANDOM), others, read)
    return read.astype(np.int32), chosen


def _spread(count: int, most: int) -> NDArray[np.int64]:
    """At most ``most`` of ``count`` numbers, evenly spaced, since the stream holds one domain after another."""
    return np.linspace(0, count, min(count, most), endpoint=False).astype(np.int64)
