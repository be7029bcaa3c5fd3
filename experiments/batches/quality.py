"""Do harder batches make better models? The same small model, from scratch, on batches of several settings.

``python -m experiments.batches.quality DATA --domains ... [--settings ...] [--kind static] [--seeds N]
[--epochs N] [--share S] [--output FILE]``

``DATA`` is a folder like the ``data`` that ``dvc repro embed`` makes. The model is trained on the ``--domains``, or on
a ``--share`` of their training pairs. It is evaluated on their held-out queries (home) and on those of all other
domains (elsewhere). Every setting runs the real stages from filter to train with some parameters changed. A seed
changes the batches and the weights.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from batchwright.core.files import read_json, write_tsv
from experiments.common.arguments import training_parser
from experiments.common.small_models import BASE, LEARNING_RATES, ndcg, save_start_model, stretch
from experiments.common.workspace import START, Row, Workspace, summary

Changes = dict[str, Any]

NO_SCORES: Changes = {"filter.margin": None, "filter.threshold": 9.0}
# The values of a schedule are stretched over the epochs.
SCHEDULE: Changes = {"pack.cluster_share": [0.0, 1.0]}
SETTINGS: dict[str, Changes] = {
    "random": {"policy": "random"},
    "random, no mask": {"policy": "random", **NO_SCORES},
    "reference": {"cluster.method": "mirrored"},
    "contextual": {},
    "contextual, no mask": NO_SCORES,
    "contextual, margin 0": {"filter.margin": 0.0},
    "contextual, margin .1": {"filter.margin": 0.1},
    "half": {"pack.cluster_share": [0.5]},
    "quarter": {"pack.cluster_share": [0.25]},
    "random, then contextual": SCHEDULE,
    "random, then contextual, margin 0": {**SCHEDULE, "filter.margin": 0.0},
    "random, then contextual, no mask": {**SCHEDULE, **NO_SCORES},
    "random, then contextual, factor .1": {**SCHEDULE, "filter.margin": None, "filter.factor": 0.1},
    "random, then contextual, threshold .6": {**SCHEDULE, "filter.margin": None, "filter.threshold": 0.6},
    "random, then half": {"pack.cluster_share": [0.0, 0.5]},
    "random, then reference": {**SCHEDULE, "cluster.method": "mirrored"},
    "random, late contextual": {"pack.cluster_share": [0.0, 0.0, 0.0, 1.0]},
    "harder and harder": {"pack.cluster_share": [0.0, 0.25, 0.5, 1.0]},
    "clusters of 4 batches": {"cluster.cluster_size": 512},
    "temperature .02": {"train.biencoder.temperature": 0.02},
    "random, temperature .02": {"policy": "random", "train.biencoder.temperature": 0.02},
}


def main() -> None:
    """Print one line per setting: mean and spread of hardness, last loss and nDCG@10 over seeds."""
    arguments = _parse()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), arguments.data, arguments.domains, arguments.share)
        for setting in arguments.settings:
            found = [_run(workspace, setting, seed, arguments) for seed in range(arguments.seeds)]
            rows += found
            measures = [
                name for name in found[0] if name not in ("domains", "setting", "kind", "share", "epochs", "seed")
            ]
            print(summary(setting, found, measures), flush=True)
            if arguments.output:
                write_tsv(arguments.output, rows)


def _parse() -> argparse.Namespace:
    parser = training_parser(
        "experiments.batches.quality",
        str(__doc__),
        "python -m experiments.batches.quality data --domains medquad --kind static --seeds 3",
    )
    parser.add_argument("--vectors", default="minilm")
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS), metavar="SETTING")
    parser.add_argument("--kind", choices=list(LEARNING_RATES), default="transformer")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--share", type=float, default=1.0)
    return parser.parse_args()


def _run(workspace: Workspace, setting: str, seed: int, arguments: argparse.Namespace) -> Row:
    save_start_model(workspace.folder / START, arguments.kind, seed)
    changes = dict(SETTINGS[setting])
    policy = changes.pop("policy", "contextual")
    own = {f"{stage}.vectors": arguments.vectors for stage in ("cluster", "filter")}
    epochs = {f"{group}.epochs": arguments.epochs for group in ("pack", "train.common")}
    rate = {"train.common.learning_rate": LEARNING_RATES[arguments.kind]}
    if schedule := changes.get("pack.cluster_share"):
        changes["pack.cluster_share"] = stretch(schedule, arguments.epochs)
    workspace.set_params(BASE, {"base.seed": seed, **own, **epochs, **rate, **changes})
    workspace.filter()
    for stage in ("cluster", f"pack {policy}"):
        workspace.run(stage)
    model = workspace.train("biencoder", policy)
    packed = read_json(workspace.folder / f"results/pack/{policy}.json", made_by="pack")
    trained = read_json(workspace.folder / "results/train/trained.json", made_by="train")
    scores = {f"ndcg@10 {key}": ndcg(model, each) for key, each in workspace.collections.items()}
    return {
        "domains": " ".join(arguments.domains),
        "setting": setting,
        "kind": arguments.kind,
        "share": arguments.share,
        "epochs": arguments.epochs,
        "seed": seed,
        "unmasked_hardness": packed["unmasked_hardness"],
        "masked_share": packed["masked_share"],
        "last_loss": trained["last_loss"],
        **scores,
    }


if __name__ == "__main__":
    main()
