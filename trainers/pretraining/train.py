"""Pre-trains as one rank: its part of every batch, validation, and the files written at the end."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batchwright.core.atomic import atomic_dir
from batchwright.core.errors import InputError
from batchwright.core.results import write_tsv
from trainers.common.checkpoint import Row
from trainers.common.distributed import own_rows, rank, sum_ranks
from trainers.common.randomness import seed_start
from trainers.common.step_loop import checkpoint_file, run_steps
from trainers.pretraining.corpus import TOKENIZER, TRAINING, VALIDATION, load_tokenizer, special_tokens
from trainers.pretraining.diagnose import cosine_by_length, cosine_by_position, validation_sums
from trainers.pretraining.folder import build_model, save_pretrained
from trainers.pretraining.job import PretrainJob
from trainers.pretraining.masking import mask_tokens
from trainers.pretraining.model import Sequences
from trainers.pretraining.tokens import Stream, batch_numbers, read_stream

VALIDATED = 512
DIAGNOSED = 128


def pretrain(job: PretrainJob) -> None:
    """Pre-train in this process, possibly as one rank of several; rank 0 writes the model and its curves.

    A run that starts from a pre-trained folder continues with the batches that the earlier runs would have read next,
    if seed and corpus are the same. The optimiser, the learning rate schedule and the curves' step numbers start over.

    Raises:
        InputError: the loss is not finite, there is too little text to validate on, or the encoder or start model does
            not fit the parameters.
    """
    seed_start(job.seed)
    run = Pretraining(job)
    advice = "lower learning_rate"
    curve = run_steps(
        job,
        run.model,
        job.params,
        job.params.steps,
        run.backward,
        task="pretrain",
        advice=advice,
        before=run.steps_before,
    )
    last = {"step": job.params.steps, **run.validate()}
    if rank() > 0:
        return
    kept = ("step", "loss", "mlm", "decoder", "learning_rate")
    validated = [{"step": int(row["step"]) - 1, **_validation(row)} for row in curve if "validation mlm" in row]
    write_tsv(job.results / f"{job.name}.tsv", [{key: row[key] for key in kept if key in row} for row in curve])
    write_tsv(job.results / f"{job.name}-validation.tsv", [*validated, last])
    run.write_diagnostics()
    with atomic_dir(job.model) as folder:
        save_pretrained(run.model, run.tokenizer, job.params, run.steps_before + job.params.steps, folder)
    checkpoint_file(job).unlink(missing_ok=True)


class Pretraining:
    """The model, its sequences, and its gradient on a batch of them."""

    def __init__(self, job: PretrainJob) -> None:
        self._job, self._params = job, job.params
        self.tokenizer = load_tokenizer(job.corpus / TOKENIZER)
        special = special_tokens(self.tokenizer, str(job.corpus))
        self._training = read_stream(job.corpus / TRAINING, special)
        self._validation = read_stream(job.corpus / VALIDATION, special)
        self._sep = special.sep
        self._marks = np.array(self.tokenizer.all_special_ids)
        self._mask = special.mask
        self._ordinary = np.setdiff1d(np.arange(len(self.tokenizer)), self._marks).astype(np.int32)
        model, self.steps_before = build_model(job.params, job.start_model, self.tokenizer)
        self.model = model.to(job.device)
        if self._validation.whole(job.params.max_length) < 2:
            raise InputError(
                f"only {len(self._validation.tokens)} tokens to validate on, fewer than two sequences of "
                f"{job.params.max_length}; add pairs, or raise held_out from "
                f"{job.params.held_out}"
            )

    def backward(self, step: int) -> Row:
        """Backpropagate this rank's part of both losses, each a mean over the tokens of the whole batch."""
        row: Row = {}
        if step * self._params.validations % self._params.steps < self._params.validations:  # evenly spaced
            row = {f"validation {name}": value for name, value in self.validate().items()}
        count = self._training.count(self._params.max_length)
        place = self.steps_before + step
        numbers = batch_numbers(place, self._params.batch_size, count, self._job.seed)
        generator = np.random.default_rng([self._job.seed, place])
        own, chosen, wanted = self._read(self._training, numbers, generator, own_rows())
        sums = torch.zeros(2, device=self._job.device)
        for chunk in self._chunks(own):
            each = self.model(chunk)
            (each.encoder / chosen + each.decoder / wanted).backward()
            sums += torch.stack(each).detach()
        mlm, decoder = (sum_ranks(sums) / torch.tensor([chosen, wanted], device=sums.device)).tolist()
        losses = {"mlm": mlm} | ({"decoder": decoder} if self.model.decoder else {})
        return {"loss": sum(losses.values()), **losses, **row}

    def validate(self) -> Row:
        """Compute both losses, in nats per token, and the h0 gap on held-out text; the masks are always the same.

        Every rank computes them on all the sequences.
        """
        numbers = _spread(self._validation.count(self._params.max_length), VALIDATED)
        whole, chosen, wanted = self._read(self._validation, numbers, np.random.default_rng(0), slice(None))
        self.model.eval()
        with torch.random.fork_rng():
            sums = validation_sums(self.model, self._chunks(whole))
        self.model.train()
        mlm, decoder, shuffled = (sums / sums.new_tensor([chosen, wanted, wanted])).tolist()
        return {"mlm": mlm} | ({"decoder": decoder, "h0_gap": shuffled - decoder} if self.model.decoder else {})

    def write_diagnostics(self) -> None:
        """Write mean cosines of unpadded held-out sequences, by length and by the decoder's position."""
        length, chunk = self._params.max_length, self._params.mini_batch_size
        numbers = _spread(self._validation.whole(length), DIAGNOSED)
        tokens = torch.from_numpy(self._validation.rows(numbers, length)).long().to(self._job.device)
        self.model.eval()
        lengths = cosine_by_length(self.model, tokens, self._sep, chunk)
        positions = cosine_by_position(self.model, tokens, chunk) if self.model.decoder else []
        write_tsv(self._job.results / f"{self._job.name}-length.tsv", lengths)
        write_tsv(self._job.results / f"{self._job.name}-position.tsv", positions)

    def _read(
        self, stream: Stream, numbers: NDArray[np.int64], generator: np.random.Generator, rows: slice
    ) -> tuple[Sequences, int, int]:
        """Read the sequences of ``rows``, and count the tokens that encoder and decoder predict in all rows.

        Every rank draws the masks of the whole batch, so that they do not depend on the number of ranks.
        """
        tokens = stream.rows(numbers, self._params.max_length)
        maskable = ~np.isin(tokens, self._marks)
        read, chosen = mask_tokens(
            tokens, maskable, self._params.mlm_probability, self._mask, self._ordinary, generator
        )
        present = tokens != self._training.special.pad
        arrays = (tokens.astype(np.int64), read.astype(np.int64), chosen, present)
        sequences = Sequences(*(torch.from_numpy(each[rows]).to(self._job.device) for each in arrays))
        return sequences, max(1, int(chosen.sum())), int(present[:, 1:].sum())

    def _chunks(self, batch: Sequences) -> list[Sequences]:
        parts: list[tuple[Tensor, ...]] = [torch.split(each, self._params.mini_batch_size) for each in batch]
        return [Sequences(*part) for part in zip(*parts, strict=True)]


def _spread(count: int, most: int) -> NDArray[np.int64]:
    """At most ``most`` of ``count`` numbers, evenly spaced, since the stream holds one domain after another."""
    return np.linspace(0, count, min(count, most), endpoint=False).astype(np.int64)


def _validation(row: Row) -> Row:
    prefix = "validation "
    return {key.removeprefix(prefix): value for key, value in row.items() if key.startswith(prefix)}
