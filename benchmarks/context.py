"""Which context helps a trained CDE, and how much of it (*Contextual Document Embeddings*, figures 7 and 16).

``python -m benchmarks.context MODEL --pairs PAIRS [--beir FOLDER ...] [--other DOMAIN] [--sizes 1 4 16 64]
[--output FILE]``

``MODEL`` was trained on the domains of ``PAIRS``. Prints nDCG@10 on their held-out queries and on BEIR folders, by
where the context comes from and how many documents it has.
"""

import stages  # noqa: F401, I001  (keeps libraries quiet)

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from benchmarks.workspace import ASKED, Row
from formats.results import write_tsv
from formats.pairs import domains, read_pairs
from stages.evaluate import bm25
from stages.evaluate.collection import Collection, beir, held_out
from stages.evaluate.metrics import DEPTH, average, score_queries
from trainers.cde.contextual_encoder import ContextualEncoder
from trainers.cde.folder import load_contextual
from trainers.encoding import encode
from trainers.search import search


def main() -> None:
    """Print a line for each collection, strategy and size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.context")
    parser.add_argument("model", type=Path)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--beir", nargs="+", type=Path, default=[])
    parser.add_argument("--other", help="the domain that stands for another one; the first unless given")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1, 4, 16, 64])
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    rows: list[Row] = []
    for collection in [held_out(arguments.pairs, ASKED), *map(beir, arguments.beir)]:
        strategies = _strategies(collection, arguments.pairs, arguments.other)
        rows.append(_measure(arguments.model, collection, "none", [], 0))
        for name, draw in strategies.items():
            rows += [_measure(arguments.model, collection, name, draw(size), size) for size in arguments.sizes]
    if arguments.output:
        write_tsv(arguments.output, rows)


def _strategies(collection: Collection, pairs: Path, other: str | None) -> dict[str, Callable[[int], Sequence[str]]]:
    """What each takes the context from; ``fit_context`` draws."""
    corpus = [document.text for document in collection.documents]
    training = [text for name in domains(pairs) for text in _documents(pairs, name)]
    foreign = _documents(pairs, other or domains(pairs)[0])
    return {
        "corpus": lambda _: corpus,
        "training set": lambda _: training,
        "another domain": lambda _: foreign,
        "top of BM25": lambda size: _top(collection, corpus, size),
    }


def _documents(pairs: Path, name: str) -> list[str]:
    texts: list[str] = read_pairs(pairs, name, "train")["document"].to_pylist()
    return texts


def _top(collection: Collection, corpus: list[str], size: int) -> list[str]:
    """The documents that BM25 ranks best over all queries, by the sum of reciprocal ranks."""
    indices, _ = bm25.retrieve([query.text for query in collection.queries], corpus, DEPTH)
    worth = np.zeros(len(corpus))
    np.add.at(worth, indices, 1 / np.arange(1, indices.shape[1] + 1))
    return [corpus[row] for row in np.argsort(-worth, kind="stable")[:size]]


def _measure(folder: Path, collection: Collection, strategy: str, context: Sequence[str], size: int) -> Row:
    model = load_contextual(folder)
    encoder = cast(ContextualEncoder, model[0])
    if context:
        encoder.fit_context(context, size=size)
    queries, documents = ([each.text for each in side] for side in (collection.queries, collection.documents))
    ranked, _ = search(encode(model, queries, "queries"), encode(model, documents, "documents"), DEPTH)
    scored = score_queries(collection, ranked)
    row: Row = {"collection": collection.name, "context": strategy, "documents": size, **average(scored, scored)}
    print(f"{collection.name:12} {strategy:16} {size:5} {row['ndcg@10']:.4f}", flush=True)
    return row


if __name__ == "__main__":
    main()
