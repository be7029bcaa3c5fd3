"""``python -m stages.pretrain``: the texts of all pairs to a pre-trained encoder."""

from pathlib import Path

from formats.params import Base, load_params
from formats.results import read_tsv, write_json
from stages.entry import run
from trainers.launch import launch
from trainers.seed.pretraining.job import plan_pretraining
from trainers.seed.pretraining.params import PretrainParams
from trainers.seed.pretraining.train import pretrain

PAIRS = Path("data/pairs")
MODEL = Path("models/seed-pretrained")
RESULTS = Path("results/pretrain")


def main() -> str:
    """Write ``models/seed-pretrained`` and its curves, ``results/pretrain/seed*.tsv``."""
    job = plan_pretraining(
        variant="seed",
        seed=load_params("base", Base).seed,
        params=load_params("pretrain.seed", PretrainParams),
        pairs=PAIRS,
        model=MODEL,
        results=RESULTS,
    )
    launch(job, pretrain)
    curve = read_tsv(RESULTS / "seed-validation.tsv", made_by="pretrain")
    first, last = ({key: float(value) for key, value in curve[at].items() if key != "step"} for at in (0, -1))
    write_json(RESULTS / "seed.json", {"steps": job.params.steps, "first": first, "last": last})
    return (
        f"seed: {job.params.steps:,} steps; on held-out text MLM {first['mlm']:.3f} -> {last['mlm']:.3f}, "
        f"decoder {first['decoder']:.3f} -> {last['decoder']:.3f}, h0 gap {last['h0_gap']:.3f}"
    )


if __name__ == "__main__":
    run("pretrain", main)
