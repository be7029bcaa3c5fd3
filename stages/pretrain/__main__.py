"""``python -m stages.pretrain VARIANT``: the texts of all training pairs to a pre-trained encoder."""

import argparse
from pathlib import Path

from formats.params import Base, load_params
from formats.results import read_tsv, write_json
from stages.entry import run
from trainers.launch import launch
from trainers.seed.pretraining.job import plan_pretraining
from trainers.seed.pretraining.params import PretrainParams
from trainers.seed.pretraining.train import pretrain

PAIRS = Path("data/pairs")
MODELS = Path("models")
RESULTS = Path("results/pretrain")


def main() -> str:
    """Write ``models/VARIANT-pretrained`` and its curves, ``results/pretrain/VARIANT*.tsv``."""
    parser = argparse.ArgumentParser(prog="python -m stages.pretrain")
    parser.add_argument("variant", choices=["seed"])
    variant = parser.parse_args().variant
    job = plan_pretraining(
        variant=variant,
        seed=load_params("base", Base).seed,
        params=load_params(f"pretrain.{variant}", PretrainParams),
        pairs=PAIRS,
        model=MODELS / f"{variant}-pretrained",
        results=RESULTS,
    )
    launch(job, pretrain)
    rows = read_tsv(RESULTS / f"{variant}-validation.tsv", made_by="pretrain")
    first, last = ({key: float(value) for key, value in rows[at].items() if key != "step"} for at in (0, -1))
    write_json(RESULTS / f"{variant}.json", {"steps": job.params.steps, "first": first, "last": last})
    return (
        f"{variant}: {job.params.steps:,} steps; on held-out text MLM {first['mlm']:.3f} -> {last['mlm']:.3f}, "
        f"decoder {first['decoder']:.3f} -> {last['decoder']:.3f}, h0 gap {last['h0_gap']:.3f}"
    )


if __name__ == "__main__":
    run("pretrain", main)
