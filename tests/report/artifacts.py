"""Small artifacts in the form that the other stages write, for the report to read."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from formats.clusters import Clusters
from formats.results import write_json, write_tsv

DOMAINS = ("cooking", "<script>alert(1)</script> & $x$")
PIPELINE = """
stages:
  ingest: {cmd: x, deps: [pipelines/ingest], outs: [data/pairs], metrics: [{results/ingest.json: {cache: false}}]}
  embed: {cmd: x, deps: [data/pairs], outs: [data/vectors]}
  cluster: {cmd: x, deps: [data/pairs, data/vectors], outs: [data/clusters]}
  filter: {cmd: x, deps: [data/pairs, data/vectors], outs: [data/negatives]}
  pack:
    matrix: {policy: [contextual, random]}
    cmd: x
    deps: [data/pairs, data/clusters, data/negatives]
    outs: ["data/shards/${item.policy}"]
  pretrain:
    foreach: ${pretrain}
    do: {cmd: x, deps: [data/pairs], outs: ["models/${key}-pretrained"]}
  train:
    foreach: ${variants}
    do:
      cmd: x
      deps: ["trainers/${key}", "${item.start}", data/shards/contextual]
      outs: ["models/${key}"]
  control:
    foreach: ${variants}
    do:
      cmd: x
      deps: ["trainers/${key}", "${item.start}", data/shards/random]
      outs: ["models/${key}-random"]
  evaluate:
    foreach: ${variants}
    do:
      cmd: x
      deps: [data/pairs, "models/${key}", "models/${key}-random"]
      metrics: ["results/evaluate/${key}.json"]
  report: {cmd: x, deps: [results/evaluate, results/ingest.json], outs: [report/index.html]}
"""


def write_artifacts(
    folder: Path,
    collections: tuple[str, ...] = (),
    variants: tuple[str, ...] = ("biencoder",),
    pretrained: tuple[str, ...] = (),
    rounds: tuple[str, ...] = (),
    by_tokens: tuple[str, ...] = (),
) -> None:
    """All that the report reads; ``collections`` stand beside the held-out one."""
    (folder / "dvc.yaml").write_text(PIPELINE)
    params = {
        "variants": {name: {"start": f"models/{name}-pretrained"} for name in variants},
        "pretrain": {name: {"steps": 20} for name in pretrained},
        "rounds": {name: {"variant": variants[0], "model": variants[0]} for name in rounds},
        "token_variants": list(by_tokens),
        "cluster": {"vectors": "small", "cluster_size": 8, "iterations": 2},
    }
    (folder / "params.yaml").write_text(yaml.safe_dump(params))
    for name in rounds:
        _write_round(folder, f"{variants[0]}-{name}")
    for variant in pretrained:
        _write_pretraining(folder / "results/pretrain", variant)
    _write_counts(folder)
    _write_clusters(folder)
    for index, policy in enumerate(("contextual", "random")):
        _write_batches(folder / "results/pack", policy, 0.5 - 0.3 * index)
    for index, variant in enumerate(variants):
        for run in (variant, f"{variant}-random"):
            write_tsv(folder / f"results/train/{run}.tsv", [_step(step, run) for step in range(30)])
        write_evaluation(folder, variant, ("held_out", *collections), index / 100)


def _write_round(folder: Path, name: str) -> None:
    write_tsv(folder / f"results/train/{name}.tsv", [_step(step, name) for step in range(30)])
    write_json(folder / f"results/evaluate/{name}.json", {"held_out": {f"{name} batches": scores(0.6543)}})
    rows = [
        {"collection": "held_out", "domain": domain, "system": f"{name} batches", "queries": 1234} for domain in DOMAINS
    ]
    write_tsv(folder / f"results/evaluate/{name}.tsv", [row | scores(0.6543) for row in rows])


def write_evaluation(folder: Path, variant: str, collections: tuple[str, ...], shift: float) -> None:
    """``results/evaluate/VARIANT``: BM25 scores the same for all variants, models do not."""
    systems = {"BM25": 0.411, "untrained": 0.522 + shift}
    systems |= {f"{variant}, random batches": 0.587 + shift, f"{variant}, contextual batches": 0.623 + shift}
    write_json(
        folder / f"results/evaluate/{variant}.json",
        {
            name: {system: scores(value + place / 50) for system, value in systems.items()}
            for place, name in enumerate(collections)
        },
    )
    rows = [
        {"collection": name, "domain": domain, "system": system, "queries": 1234, **scores(value)}
        for name in collections
        for system, value in systems.items()
        for domain in (DOMAINS if name == "held_out" else (name,))
    ]
    write_tsv(folder / f"results/evaluate/{variant}.tsv", rows)


def write_runs(file: Path) -> None:
    """Runs of an experiment, the seeds of a setting apart from each other."""
    write_tsv(
        file,
        [
            {
                "domains": "a b",
                "model": model,
                "epochs": 4,
                "batches": batches,
                "seed": seed,
                "last_loss": loss,
                "ndcg@10 home": ndcg,
            }
            for model, batches, seed, loss, ndcg in (
                ("cde", "random", 0, 1.0, 0.4),
                ("cde", "<i>", 0, 0.125, ""),
                ("biencoder", "random", 0, 0.75, 0.25),
                ("cde", "random", 1, 1.5, 0.6),
            )
        ],
    )


def scores(ndcg: float) -> dict[str, float]:
    return {"ndcg@10": round(ndcg, 6), "mrr@10": round(ndcg - 0.0503, 6), "recall@100": round(ndcg + 0.2707, 6)}


def _write_counts(folder: Path) -> None:
    domain = {"train": 40, "test": 4, "queries": 43, "documents": 39}
    sources = {
        "10 last": {"in": 1, "out": 1, "rejected": {}},
        "0 first <b>": {"in": 92, "out": 87, "rejected": {"duplicate": 2, "query is empty": 3}},
    }
    write_json(folder / "results/ingest.json", {"domains": dict.fromkeys(DOMAINS, domain), "sources": sources})


def _write_clusters(folder: Path) -> None:
    sizes = np.array([3, 7, 9, 9, 12])
    metrics: dict[str, Any] = {}
    for domain in DOMAINS:
        assignment = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
        centroids = np.zeros((len(sizes), 2, 4), np.float32)
        Clusters(assignment=assignment, centroids=centroids).write(folder / "data/clusters", domain, 0)
        metrics[domain] = {"pairs": 40, "clusters": 5, "largest": 12, "median": 9, "smallest": 3}
    write_json(folder / "results/cluster.json", metrics)


def _write_batches(folder: Path, policy: str, hardness: float) -> None:
    rows = [
        {
            "batch": batch,
            "epoch": 0,
            "domain": DOMAINS[batch % 2],
            "hardness": hardness + batch / 100,
            "unmasked_hardness": hardness / 2,
            "masked_share": hardness / 4,
        }
        for batch in range(10)
    ]
    summary = {
        "hardness": 0.1 + hardness,
        "unmasked_hardness": hardness,
        "masked_share": 0.25,
        "masked_by": {"duplicate": 0.05, "score": 0.2},
    }
    write_tsv(folder / f"{policy}.tsv", rows)
    write_json(folder / f"{policy}.json", {"batches": 10, "pairs": 80, "left_over": 7, **summary})


def _write_pretraining(folder: Path, variant: str) -> None:
    curves = {"mlm": 8.0, "decoder": 7.0, "h0_gap": 0.5}
    write_tsv(folder / f"{variant}-validation.tsv", [{"step": step, **curves} for step in (0, 10, 20)])
    write_tsv(folder / f"{variant}-length.tsv", [{"length": length, "cosine": 1 / length} for length in (8, 16)])
    write_tsv(folder / f"{variant}-position.tsv", [{"position": place, "cosine": 0.25} for place in range(4)])


def _step(step: int, run: str) -> dict[str, Any]:
    fall = math.exp(-step / (10 + len(run)))
    return {"step": step + 1, "epoch": 1, "loss": fall, "accuracy": 1 - fall, "learning_rate": 1e-5}
