"""``python -m stages.pretrain VARIANT``: the texts of all training pairs to a pre-trained encoder."""

import argparse
from pathlib import Path

from formats.errors import InputError
from formats.params import Base, load_params
from formats.results import read_tsv, write_json
from stages.entry import run
from trainers.launch import launch
from trainers.seed.pretraining.job import plan_pretraining
from trainers.seed.pretraining.params import NewEncoder, PretrainParams, StartEncoder
from trainers.seed.pretraining.train import pretrain

PAIRS = Path("data/pairs")
MODELS = Path("models")
RESULTS = Path("results/pretrain")

NAMES = {"mlm": "MLM", "decoder": "decoder", "h0_gap": "h0 gap"}


def main() -> str:
    """Write ``models/VARIANT-pretrained`` and its curves, ``results/pretrain/VARIANT*.tsv``."""
    parser = argparse.ArgumentParser(prog="python -m stages.pretrain")
    parser.add_argument("variant", choices=["seed"])
    variant = parser.parse_args().variant
    params = load_params(f"pretrain.{variant}", PretrainParams)
    model = MODELS / f"{variant}-pretrained"
    _check_start(params.encoder, model)
    job = plan_pretraining(
        variant=variant,
        seed=load_params("base", Base).seed,
        params=params,
        pairs=PAIRS,
        model=model,
        results=RESULTS,
    )
    launch(job, pretrain)
    rows = read_tsv(RESULTS / f"{variant}-validation.tsv", made_by="pretrain")
    first, last = ({key: float(value) for key, value in rows[at].items() if key != "step"} for at in (0, -1))
    write_json(RESULTS / f"{variant}.json", {"steps": job.params.steps, "first": first, "last": last})
    losses = [f"{name} {first[key]:.3f} -> {last[key]:.3f}" for key, name in NAMES.items() if key in last]
    return f"{variant}: {job.params.steps:,} steps; on held-out text " + ", ".join(losses)


def _check_start(encoder: NewEncoder | StartEncoder, written: Path) -> None:
    if isinstance(encoder, StartEncoder) and Path(encoder.model).resolve() == written.resolve():
        raise InputError(
            f"pretrain.seed.encoder.model: '{encoder.model}' is what this stage writes, and DVC removes it before; "
            "copy it to another folder and start from that"
        )


if __name__ == "__main__":
    run("pretrain", main)
