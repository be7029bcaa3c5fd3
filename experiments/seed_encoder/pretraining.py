"""Does a weaker decoder make a better encoder (*Less is More*, section 5)? Pre-training compared after fine-tuning.

``python -m experiments.seed_encoder.pretraining DATA --domains ... [--kinds ...] [--seeds N] [--steps N] [--tuning N]
[--shares S ...] [--output FILE]``

``DATA`` is a folder like the ``data`` that ``dvc repro embed`` makes. All kinds read the same texts of ``--domains`` in
the same order for the same number of steps, with the same masks (twice as many for RetroMAE). For each of the
``--shares`` of the training pairs, they are fine-tuned on the same random batches for ``--tuning`` steps. They are
evaluated on the held-out queries of these domains.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from batchwright.core.results import read_json, read_tsv, write_tsv
from experiments.common.arguments import training_parser
from experiments.common.small_models import BASE, ndcg
from experiments.common.workspace import START, Row, Workspace, held_out_of, summary
from stages.scoring.collection import Collection
from stages.scoring.params import HeldOutParams

ASKED = HeldOutParams(queries=500, documents=2000)
BATCH = 64
ENCODER = {
    "kind": "new",
    "vocab_size": 2048,
    "config": {
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 512,
        "max_position_embeddings": 64,
    },
}
PRETRAIN = {
    "encoder": ENCODER,
    "max_length": 32,
    "batch_size": 32,
    "mini_batch_size": 32,
    "learning_rate": 2e-3,
    "warmup_ratio": 0.1,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
}
# The first kind is what all the others start from: its only step is warm-up, at a learning rate of 0.
KINDS: dict[str, dict[str, Any]] = {
    "not pre-trained": {"decoder": None, "steps": 1, "warmup_ratio": 0.9},
    "MLM": {"decoder": None},
    "SEED, 3 layers, window 2": {"decoder": {"kind": "weak", "layers": 3, "window": 2}},
    "SEED, 1 layer, window 8": {"decoder": {"kind": "weak", "layers": 1, "window": 8}},
    "SEED, 5 layers, all": {"decoder": {"kind": "weak", "layers": 5, "window": None}},
    "RetroMAE": {"decoder": {"kind": "retromae"}, "mlm_probability": 0.3},
}


def main() -> None:
    """Print one line per kind, mean and spread over seeds, and write one row per run."""
    arguments = _parse()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        whole = Workspace(Path(folder) / "all", arguments.data, arguments.domains)
        spaces = {1.0: whole} | {
            share: Workspace(Path(folder) / f"{share}", arguments.data, arguments.domains, share)
            for share in arguments.shares
            if share < 1
        }
        collection = held_out_of(Path(folder) / "asked", arguments.data, arguments.domains, ASKED)
        for seed in range(arguments.seeds):
            for space in spaces.values():
                _pack(space, seed, arguments)
            for kind in arguments.kinds:
                rows.append(_run(spaces, collection, kind, seed, arguments))
                print(rows[-1], flush=True)
                if arguments.output:
                    write_tsv(arguments.output, rows)
    for kind in arguments.kinds:
        found = [row for row in rows if row["pre-training"] == kind]
        measures = [name for name, value in found[0].items() if isinstance(value, float)]
        print(summary(kind, found, measures), flush=True)


def _parse() -> argparse.Namespace:
    parser = training_parser(
        "experiments.seed_encoder.pretraining",
        str(__doc__),
        "python -m experiments.seed_encoder.pretraining data --domains medquad nl2bash",
    )
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS), metavar="KIND")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--tuning", type=int, default=300)
    parser.add_argument("--shares", nargs="+", type=float, default=[1.0, 0.1])
    return parser.parse_args()


def _pack(space: Workspace, seed: int, arguments: argparse.Namespace) -> None:
    space.set_params(BASE, _changes(space, "MLM", seed, arguments))
    space.filter()
    space.run("cluster")
    space.run("pack random")


def _changes(space: Workspace, kind: str, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    # Half as many again, since pairs that do not fill a batch are left out.
    epochs = 2 + 3 * arguments.tuning * BATCH // (2 * space.training_pairs)
    return {
        "base.seed": seed,
        "cluster.vectors": "minilm",
        "filter.vectors": "minilm",
        "pack.batch_size": BATCH,
        "pack.epochs": epochs,
        "train.common.epochs": epochs,
        "train.common.steps": arguments.tuning,
        "train.common.learning_rate": 2e-3,
        "pretrain.model": PRETRAIN | {"steps": arguments.steps} | KINDS[kind],
        "train.seed_encoder": BASE["train"]["biencoder"],
    }


def _run(
    spaces: dict[float, Workspace], collection: Collection, kind: str, seed: int, arguments: argparse.Namespace
) -> Row:
    """Pre-train on all texts, then fine-tune in each workspace."""
    whole, *others = spaces.values()
    for space in spaces.values():
        space.set_params(BASE, _changes(space, kind, seed, arguments))
    whole.run("pretrain model")
    for other in others:
        shutil.rmtree(other.folder / "models", ignore_errors=True)
        shutil.copytree(whole.folder / START, other.folder / START)
    results = whole.folder / "results/pretrain"
    last = read_json(results / "model.json", made_by="pretrain")["last"]
    lengths = read_tsv(results / "model-length.tsv", made_by="pretrain")
    positions = [float(row["cosine"]) for row in read_tsv(results / "model-position.tsv", made_by="pretrain")]
    decoded = KINDS[kind]["decoder"] is not None
    row: Row = {
        "domains": " ".join(arguments.domains),
        "steps": arguments.steps,
        "pre-training": kind,
        "seed": seed,
        "mlm": last["mlm"],
        "decoder": last["decoder"] if decoded else "",
        "h0 gap": last["h0_gap"] if decoded else "",
        "cosine of random texts": float(lengths[-1]["cosine"]),
        "cosine with first states": sum(positions[1:6]) / 5 if decoded else "",
        "cosine with last states": sum(positions[-5:]) / 5 if decoded else "",
    }
    for share in arguments.shares:
        trained = spaces[share].train("seed_encoder", "random")
        row[f"ndcg@10, {share:.0%} of labels"] = ndcg(trained, collection)
    return row


if __name__ == "__main__":
    main()
