"""Training on shards, shared by all variants."""

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from string import Template
from typing import Any, Protocol

import yaml
from torch import nn

from batchwright.core.atomic import atomic_dir
from batchwright.core.fingerprint import fingerprint
from batchwright.formats.lengths import length_of
from batchwright.formats.shards import Manifest, ShardSet
from batchwright.retrievers.common.model_folder import settle_tokenizer
from batchwright.training.batches import BatchReader, TrainBatch
from batchwright.training.losses import Outcome
from trainers.common.adapters import FOLDER, merged, save_adapters
from trainers.common.curves import Curves, recording
from trainers.common.distributed import own_rows, rank
from trainers.common.job import TrainJob, planned_batches
from trainers.common.packing import backbones
from trainers.common.params import Lora
from trainers.common.passes import computes_bfloat16
from trainers.common.step_loop import Measures, remove_checkpoints, run_steps
from trainers.common.texts import ahead


class Learner(Protocol):
    """A variant's part of the training: its model, the gradient on a batch, and how the model is saved."""

    @property
    def model(self) -> nn.Module:
        """The model to train."""

    @property
    def fresh(self) -> Sequence[nn.Parameter]:
        """Those of the model's parameters that the start model does not have."""

    def prepare(self, batch: TrainBatch) -> Any:
        """Turn this rank's texts of a batch into model inputs. It runs in another thread, while the model trains."""

    def backward(self, prepared: Any) -> Outcome:
        """Compute the loss of the whole batch and backpropagate its gradient at this rank's rows."""

    def save(self, folder: Path) -> None:
        """Write the trained model into ``folder``."""


def run_training(job: TrainJob, learner: Learner, whole: Callable[[Learner], Learner] = lambda each: each) -> None:
    """Train on the job's shards; rank 0 writes the curves while it trains, and the model after the last step.

    ``whole``, which all ranks call at once, returns on rank 0 a learner that can be saved, with what ``learner`` has
    learnt.

    Raises:
        InputError: the shards are damaged or hold too few batches, or the loss is not finite.
    """
    shards = ShardSet.open(job.shards)
    batches = planned_batches(shards, job.common)[job.every // 2 :: job.every]
    steps = len(batches)
    whole_domain = job.common.negatives_stand_for == "domain"
    reader = BatchReader(
        shards,
        job.info.prefixes,
        job.common.hard_negatives,
        whole_domain,
        in_batch=job.common.in_batch,
        taught=job.common.distill is not None,
    )

    if job.common.precision == "bfloat16" and rank() == 0 and not computes_bfloat16(job.device):
        print(
            f"warning: train {job.name}: this processor has no kernels for bfloat16, which takes many times as long as "
            "float32; set precision to float32",
            file=sys.stderr,
        )
    rows = own_rows()

    def prepare(step: int) -> Any:
        return learner.prepare(reader.read(batches[step], rows))

    def backward(step: int) -> Measures:
        measured = curves.before(step)
        loss, accuracy, measures = learner.backward(prepared(step))
        epoch = shards.manifest.epoch_of(batches[step]) + 1
        return {"epoch": epoch, "loss": loss, "accuracy": accuracy, **measures, **measured}

    def save(steps: int, folder: Path) -> None:
        prepared.settle()
        saved = whole(learner)
        if rank() == 0:
            _save(job, saved, shards.manifest, steps, folder)

    advice = f"lower its learning_rate, or raise train.{job.variant}.temperature"
    with recording(job, job.curve, job.dev_curve) as record, ahead(prepare, steps) as prepared:
        curves = Curves(job, steps, save, record)
        curve = run_steps(
            job,
            learner.model,
            job.common,
            steps,
            backward,
            task="train",
            advice=advice,
            fresh=learner.fresh,
            record=curves.record,
        )
        curves.write(curve)
        with atomic_dir(job.model) if rank() == 0 else nullcontext(job.scratch) as folder:
            save(steps, folder)
        if rank() == 0:
            remove_checkpoints(job.storage)


def _save(job: TrainJob, learner: Learner, manifest: Manifest, steps: int, folder: Path) -> None:
    with merged(learner.model) if job.common.lora else nullcontext():
        learner.save(folder)
    if job.common.lora:
        save_adapters(backbones(learner.model), folder, job.start_model.name)
    _write_card(job, manifest, steps, folder)
    settle_tokenizer(folder, length_of(job.info.max_length))
    dimensions = job.common.dimension_weights
    trained = {"variant": job.variant, "random": False, "dimensions": sorted(dimensions) if dimensions else None}
    job.info.model_copy(update=trained).write(folder)


def _write_card(job: TrainJob, manifest: Manifest, steps: int, folder: Path) -> None:
    """Fill in the variant's model card: the training's start model, batches and parameters."""
    template = Path(__file__).parents[1] / job.variant / "card.md"
    facts = {
        "base_model": f"base_model: {job.info.origin}\n" if _on_hub(job.info.origin) else "",
        "start": job.start_model.name,
        "policy": manifest.policy,
        "batch_size": manifest.batch_size,
        "steps": steps,
        "pairs": steps * manifest.batch_size,
        "manifest": fingerprint(manifest.model_dump()),
        "seed": job.seed,
        "note": "".join(f"{note}\n\n" for note in (job.note, _adapters(job.common.lora)) if note),
        "parameters": yaml.safe_dump(
            {"common": job.common.shown(), job.variant: job.params.model_dump()}, sort_keys=True
        ).rstrip(),
    }
    (folder / "README.md").write_text(Template(template.read_text(encoding="utf-8")).substitute(facts), "utf-8")


def _adapters(lora: Lora | None) -> str:
    if lora is None:
        return ""
    targets = "all linear layers" if lora.targets == "all-linear" else f"the layers {', '.join(lora.targets)}"
    return (
        f"LoRA trained adapters of rank {lora.rank} beside {targets} of the transformer. They are merged into the "
        f"weights; `{FOLDER}` has them alone."
    )


def _on_hub(origin: str | None) -> bool:
    return origin is not None and ":" not in origin and not Path(origin).is_dir()
