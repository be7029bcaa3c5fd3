"""Pre-train an encoder on the texts of all training pairs."""

from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.core.params import Base, load_params
from batchwright.core.paths import PAIRS, RESULTS, START_MODELS
from batchwright.core.results import read_tsv, write_json
from trainers.launch import launch
from trainers.pretraining.job import plan_pretraining
from trainers.pretraining.params import NewEncoder, PretrainParams, StartEncoder
from trainers.pretraining.train import pretrain

OUTPUT = RESULTS / "pretrain"
_LABELS = {"mlm": "MLM", "decoder": "decoder", "h0_gap": "h0 gap"}


def main(name: str) -> str:
    """Write ``models/start/NAME`` and its curves, ``results/pretrain/NAME*.tsv``."""
    params = load_params(f"pretrain.{name}", PretrainParams)
    model = START_MODELS / name
    _check_start(name, params.encoder, model)
    job = plan_pretraining(
        name=name,
        seed=load_params("base", Base).seed,
        params=params,
        pairs=PAIRS,
        model=model,
        results=OUTPUT,
    )
    launch(job, pretrain)
    rows = read_tsv(OUTPUT / f"{name}-validation.tsv", made_by="pretrain")
    first, last = ({key: float(value) for key, value in rows[at].items() if key != "step"} for at in (0, -1))
    write_json(OUTPUT / f"{name}.json", {"steps": job.params.steps, "first": first, "last": last})
    losses = [f"{label} {first[key]:.3f} -> {last[key]:.3f}" for key, label in _LABELS.items() if key in last]
    return f"{name}: {job.params.steps:,} steps; on held-out text " + ", ".join(losses)


def _check_start(name: str, encoder: NewEncoder | StartEncoder, written: Path) -> None:
    if isinstance(encoder, StartEncoder) and Path(encoder.model).resolve() == written.resolve():
        raise InputError(
            f"pretrain.{name}.encoder.model: '{encoder.model}' is this stage's own output, which DVC removes first; "
            "copy it to another folder and start from there"
        )
