"""Which context helps a trained CDE, and how much of it (*Contextual Document Embeddings*, figures 7 and 16).

``python -m experiments.cde.context DATA --models FOLDER ... --trained DOMAIN ... [--asked DOMAIN ...]
[--beir FOLDER ...] --other DOMAIN [--sizes N ...] [--output FILE]``

``DATA`` is a folder like the ``data`` that ``dvc repro ingest`` makes. The models are of one kind, trained on the
domains ``--trained`` from several seeds (``experiments.cde.table1 --keep``). Measures nDCG@10 on held-out queries of
each domain in ``--asked`` and on BEIR folders, by where the context comes from and how many documents it has.
"""

import argparse
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch.nn import functional

from batchwright.core.command import new_parser
from batchwright.core.results import write_tsv
from batchwright.formats.pairs import read_pairs
from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from batchwright.retrievers.cde.folder import load_contextual
from batchwright.retrievers.common.encode import encode
from batchwright.retrievers.common.search import search
from experiments.common.workspace import Row, held_out_of
from stages.scoring import bm25
from stages.scoring.beir import beir
from stages.scoring.collection import Collection
from stages.scoring.measures import DEPTH, average, score_queries
from stages.scoring.params import HeldOutParams

ASKED = HeldOutParams(queries=500, documents=2000)
TOP = "top of BM25"


def main() -> None:
    """Print how similar each model's context vectors are, and one line per strategy and size: means over the models."""
    arguments = _parse()
    seen = [text for name in arguments.trained for text in _documents(arguments.data, name)]
    for model in arguments.models:
        print(f"{model}: mean cosine of context vectors {_alike(model, seen[:64]):.4f}", flush=True)
    collections = _collections(arguments)
    foreign = _documents(arguments.data, arguments.other)
    contexts = {name: _contexts(collection, seen, foreign) for name, collection in collections.items()}
    rows: list[Row] = []
    settings = [
        ("none", 0),
        *((strategy, size) for strategy in next(iter(contexts.values())) for size in arguments.sizes),
    ]
    for strategy, size in settings:
        for seed, model in enumerate(arguments.models):
            scores = {
                f"ndcg@10 {name}": _ndcg(model, collection, _taken(contexts[name], strategy, size), size)
                for name, collection in collections.items()
            }
            rows.append({"context": strategy, "documents": size, "seed": seed, **scores})
        found = rows[-len(arguments.models) :]
        means = [f"{key} {statistics.mean(row[key] for row in found):.4f}" for key in scores]
        print(f"{strategy:16} {size:5}  {'  '.join(means)}", flush=True)
    if arguments.output:
        write_tsv(arguments.output, rows)


def _parse() -> argparse.Namespace:
    parser = new_parser(
        "experiments.cde.context",
        str(__doc__),
        "python -m experiments.cde.context data --models kept/* --trained medquad --other squad",
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--models", nargs="+", type=Path, required=True)
    parser.add_argument("--trained", nargs="+", required=True)
    parser.add_argument("--asked", nargs="+", default=[], help="domains to retrieve from; by default those trained on")
    parser.add_argument("--beir", nargs="+", type=Path, default=[])
    parser.add_argument("--other", required=True, help="domain of the foreign context")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


def _collections(arguments: argparse.Namespace) -> dict[str, Collection]:
    with tempfile.TemporaryDirectory() as folder:
        home = {
            name: held_out_of(Path(folder) / name, arguments.data, [name], ASKED)
            for name in arguments.asked or arguments.trained
        }
    return home | {folder.name: beir(folder) for folder in arguments.beir}


def _contexts(collection: Collection, seen: list[str], foreign: list[str]) -> dict[str, list[str]]:
    """Documents to take a context from: the first ones of ``TOP``, a sample of the others."""
    corpus = [document.text for document in collection.documents]
    return {
        "corpus": corpus,
        TOP: _ranked(collection, corpus),
        "training set": seen,
        "another domain": foreign,
    }


def _taken(contexts: Mapping[str, list[str]], strategy: str, size: int) -> list[str]:
    return contexts[strategy][: size if strategy == TOP else None] if size else []


def _documents(data: Path, name: str) -> list[str]:
    texts: list[str] = read_pairs(data / "pairs", name, "train")["document"].to_pylist()
    return texts


def _ranked(collection: Collection, corpus: list[str]) -> list[str]:
    """The corpus, best first, by the sum of its reciprocal BM25 ranks over all queries."""
    indices, _ = bm25.retrieve([query.text for query in collection.queries], corpus, DEPTH)
    worth = np.zeros(len(corpus))
    np.add.at(worth, indices, 1 / np.arange(1, indices.shape[1] + 1))
    return [corpus[row] for row in np.argsort(-worth, kind="stable")]


@torch.no_grad()
def _alike(folder: Path, texts: list[str]) -> float:
    """Mean cosine of the context vectors of different texts; at 1 the context carries no information."""
    encoder = cast(ContextualEncoder, load_contextual(folder)[0].eval())
    vectors = functional.normalize(encoder.embed_context(encoder.preprocess(texts)), dim=-1)
    return float((vectors @ vectors.T)[~torch.eye(len(texts), dtype=torch.bool)].mean())


def _ndcg(folder: Path, collection: Collection, context: Sequence[str], size: int) -> float:
    model = load_contextual(folder)
    if context:
        cast(ContextualEncoder, model[0]).fit_context(context, size=size)
    queries, documents = ([each.text for each in side] for side in (collection.queries, collection.documents))
    ranked, _ = search(encode(model, queries), encode(model, documents), DEPTH)
    scored = score_queries(collection, ranked)
    return average(scored, scored)["ndcg@10"]


if __name__ == "__main__":
    main()
