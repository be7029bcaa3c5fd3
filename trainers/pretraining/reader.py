"""Reads the sequences of a job: masked batches to train and validate on, and whole ones to diagnose."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from batchwright.core.errors import InputError
from trainers.common.passes.precision import send
from trainers.pretraining.corpus import TRAINING, VALIDATION, special_tokens
from trainers.pretraining.job import PretrainJob
from trainers.pretraining.masking import mask_tokens
from trainers.pretraining.model import Sequences
from trainers.pretraining.params import VALIDATED
from trainers.pretraining.tokens import Cut, batch_numbers, join_texts, part_texts, read_stream

DIAGNOSED = 64


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


def _spread(count: int, most: int) -> NDArray[np.int64]:
    """At most ``most`` of ``count`` numbers, evenly spaced, since the stream holds one domain after another."""
    return np.linspace(0, count, min(count, most), endpoint=False).astype(np.int64)
