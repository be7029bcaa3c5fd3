"""Pre-trains as one rank: its part of every batch, validation, and the files written at the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batchwright.core.atomic import atomic_dir
from batchwright.core.files import write_tsv
from batchwright.retrievers.common.model_folder import settle_tokenizer
from trainers.common.backbones import attend_in_float32
from trainers.common.curves import columns, measured, recording
from trainers.common.distributed import own_rows, rank, sum_ranks
from trainers.common.memory import Memory
from trainers.common.packing import backbones
from trainers.common.passes import seed_start, set_dropout, training_pass, weights_cast_once
from trainers.common.step_loop import Measures, Row, remove_checkpoints, run_steps
from trainers.common.texts import Cut, ahead, split_by_length
from trainers.pretraining.corpus import TOKENIZER, load_tokenizer
from trainers.pretraining.diagnose import cosine_by_length, cosine_by_position, validation_sums
from trainers.pretraining.folder import build_model, save_pretrained
from trainers.pretraining.job import PretrainJob
from trainers.pretraining.reader import Masked, Reader, choose

_PREFIX = "validation "


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
    losses, validation = (job.results / f"{job.name}{kind}.tsv" for kind in ("", "-validation"))
    with recording(job, losses, validation) as record, ahead(run.read, job.params.steps) as read:

        def record_both(row: Row) -> None:
            for validated in measured(_PREFIX, [row]):
                record(validation, validated)
            record(losses, _losses(row))

        curve = run_steps(
            job,
            run.model,
            job.params,
            job.params.steps,
            lambda step: run.backward(step, read(step)),
            task="pretrain",
            advice="lower learning_rate",
            fresh=run.fresh,
            record=record_both,
        )
        last = {"step": job.params.steps, **run.validate()}
        record(validation, last)
    if rank() > 0:
        return
    write_tsv(losses, list(map(_losses, curve)))
    write_tsv(validation, [*measured(_PREFIX, curve), last])
    run.write_diagnostics()
    with atomic_dir(job.model) as folder:
        steps = run.steps_before + job.params.steps
        save_pretrained(run.model, run.tokenizer, job.params, steps, folder, job.prefixes)
        settle_tokenizer(folder)
    remove_checkpoints(job.storage)


@dataclass(frozen=True)
class Rows:
    """Sequences of a batch that go through the model together; ``lengths`` ``(n,)`` are those of all of the batch."""

    places: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @property
    def tokens(self) -> int:
        """How many tokens they have, padding included."""
        return len(self.places) * int(self.lengths[self.places].max())

    def halves(self) -> "Sequence[Rows]":
        """Itself in two, or alone."""
        return [Rows(part, self.lengths) for part in np.array_split(self.places, min(2, len(self.places)))]


class Pretraining:
    """The model, its sequences, and its gradient on a batch of them."""

    def __init__(self, job: PretrainJob) -> None:
        self._job, self._params = job, job.params
        self.tokenizer = load_tokenizer(job.corpus / TOKENIZER)
        self.reader = Reader(job, self.tokenizer)
        self._memory = Memory.of(job.params.mini_batch_size, job.params.max_length, job.device)
        start = build_model(job.params, job.start_model, self.tokenizer, self.reader.counts())
        self.model, self.steps_before, self.fresh = start.model.to(job.device), start.steps, start.fresh
        set_dropout(self.model, job.params.dropout)
        if job.params.precision == "bfloat16" and job.device == "cpu":
            attend_in_float32(backbones(self.model))

    def read(self, step: int) -> Masked:
        """Read this rank's sequences of a step, on the CPU."""
        return self.reader.batch(self.steps_before + step, own_rows())

    def backward(self, step: int, batch: Masked) -> Measures:
        """Backpropagate this rank's part of both losses, each a mean over the tokens of the whole batch."""
        row: Row = {}
        if step * self._params.validations % self._params.steps < self._params.validations:  # evenly spaced
            row = columns(_PREFIX, self.validate())
        sums = torch.zeros(2, device=self._job.device)
        lengths = batch.sequences.present.sum(dim=1).numpy()
        with weights_cast_once(self._job.device):
            for places in split_by_length(lengths, Cut.on(self._job.device, self._memory.tokens)):
                self._memory.through(Rows(places, lengths), partial(self._add, sums, step, batch))
        mlm, decoder = sum_ranks(sums) / torch.tensor([batch.chosen, batch.wanted], device=sums.device)
        losses = {"mlm": mlm} | ({"decoder": decoder} if self.model.decoder else {})
        return {"loss": sum(losses.values()), **losses, **row}

    def _add(self, sums: Tensor, step: int, batch: Masked, part: "Rows") -> None:
        """Backpropagate a part of the batch and add its losses to ``sums``."""
        first = range(self._params.batch_size)[own_rows()][part.places[0]]
        draw = [self._job.seed, self.steps_before + step, first]
        with training_pass(self._params.precision, draw, sums.device):
            losses = self.model(choose(batch.sequences, part.places, self._job.device))
        summed, loss = torch.stack(losses).detach(), losses.encoder / batch.chosen + losses.decoder / batch.wanted
        self._memory.backward(loss, torch.ones_like(loss))
        sums += summed

    def validate(self) -> Row:
        """Compute both losses, in nats per token, and the h0 gap on held-out text; the masks are always the same.

        Every rank computes them on all the sequences.
        """
        whole, chosen, wanted = self.reader.held_out()
        count = len(whole.tokens)

        def compute() -> Tensor:
            parts = torch.split(torch.arange(count), min(self._at_once(), count))
            return validation_sums(self.model, [choose(whole, each.numpy(), self._job.device) for each in parts])

        self.model.eval()
        sums = self._memory.fit(compute, self._params.max_length)
        self.model.train()
        mlm, decoder, shuffled = (sums / sums.new_tensor([chosen, wanted, wanted])).tolist()
        return {"mlm": mlm} | ({"decoder": decoder, "h0_gap": shuffled - decoder} if self.model.decoder else {})

    def _at_once(self) -> int:
        """How many sequences of any length may go through the model at once."""
        return max(self._memory.tokens // self._params.max_length, 1)

    def write_diagnostics(self) -> None:
        """Write mean cosines of unpadded held-out sequences, by length and by the decoder's position."""
        tokens = self.reader.unpadded()
        chunk = min(self._at_once(), len(tokens))
        self.model.eval()
        lengths = cosine_by_length(self.model, tokens, self.reader.special.sep, chunk)
        positions = cosine_by_position(self.model, tokens, chunk) if self.model.decoder else []
        write_tsv(self._job.results / f"{self._job.name}-length.tsv", lengths)
        write_tsv(self._job.results / f"{self._job.name}-position.tsv", positions)


def _losses(row: Row) -> Row:
    return {key: row[key] for key in ("step", "loss", "mlm", "decoder", "learning_rate") if key in row}
