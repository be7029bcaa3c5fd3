"""Of sets that are searched together: which gain, and why, if batches mix their domains?

``DATA`` are Parquet files as ``experiments.rivals`` reads them, of which ``--together`` made one set. ``ARM`` trains
static models at the settings that the table ``SETTINGS``, which ``experiments.rivals.summary`` wrote, says are its
best, and so do ours, which keep domains apart. Each row of the table is one set: ``found elsewhere`` is the share of
other sets' documents among the first ten of its queries, ``apart`` if domains are kept apart, and ``mixed`` with the
other arm; ``gain`` is the difference in nDCG@10, and ``gain, alone`` what it is if only the set's own documents are
searched. Rows that the table has of other sets stay.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import nn

from batchwright.core.command import run
from batchwright.core.files import read_tsv, write_tsv
from experiments.rivals.arms import ARMS
from experiments.rivals.compare import texts_of, train_arm
from experiments.rivals.encoders import Kind
from experiments.rivals.runs import Row, Run
from experiments.rivals.sets import PairSet, pairs_parser, read_set, read_table
from experiments.rivals.summary import gain
from experiments.rivals.training import DEPTH, Settings, embed, ndcg_of

KIND: Kind = "static"
EPOCHS = 4
APART = "ours"
EXAMPLE = (
    "python -m experiments.rivals.together pairs/nl2bash.parquet pairs/tldr_pages.parquet --together shell --output "
    "together-sets.tsv"
)


@dataclass(frozen=True, kw_only=True)
class Found:
    """Of the test queries, for each seed ``(seeds, Q)``: nDCG@10 among all documents, and among those of the query's
    own set, and the share of other sets' documents among the first ten."""

    everywhere: NDArray[np.float32]
    alone: NDArray[np.float32]
    elsewhere: NDArray[np.float32]


def main() -> str:
    """Write the rows of these sets."""
    arguments = _parse()
    pairs = read_set(arguments.together, arguments.data, arguments.vectors, arguments.limit)
    names = sets_of(pairs, arguments.data, arguments.limit)
    apart, mixed = (_search(pairs, arm, names, arguments) for arm in (APART, arguments.arm))
    rows = [*_others(arguments), *_rows(arguments.together, names[0][pairs.held_out.places(dev=False)], apart, mixed)]
    write_tsv(arguments.output, rows)
    return f"{len(rows)} sets in {arguments.output}"


def sets_of(pairs: PairSet, files: list[Path], limit: int | None) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    """The set of each held-out query ``(Q,)`` and document ``(N,)``; of a text in several, the last."""
    of_side: dict[str, dict[str, str]] = {"query": {}, "document": {}}
    for file in files:
        table = read_table(file).slice(0, limit)
        for side, of_text in of_side.items():
            of_text.update(dict.fromkeys(table[side].to_pylist(), file.stem))
    held_out = pairs.held_out
    queries = np.array([of_side["query"][text] for text in held_out.queries])
    return queries, np.array([of_side["document"][text] for text in held_out.documents])


def search(
    scores: NDArray[np.float32], relevant: list[list[int]], queries: NDArray[np.str_], documents: NDArray[np.str_]
) -> NDArray[np.float32]:
    """The three measures of ``Found`` for one seed ``(3, Q)``, from scores ``(Q, N)`` and the sets of both sides."""
    own = queries[:, None] == documents[None, :]
    first = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
    elsewhere = 1 - np.take_along_axis(own, first, axis=1).mean(axis=1)
    alone = ndcg_of(np.where(own, scores, -np.inf), relevant)
    return np.stack([ndcg_of(scores, relevant), alone, elsewhere]).astype(np.float32)


def _search(
    pairs: PairSet, name: str, names: tuple[NDArray[np.str_], NDArray[np.str_]], arguments: argparse.Namespace
) -> Found:
    """Train an arm with each seed, and search for the test queries."""
    texts, settings = texts_of(pairs, KIND), _settings(arguments, name)
    asked = pairs.held_out.places(dev=False)
    relevant = [pairs.held_out.relevant[place] for place in asked]

    def score(model: nn.Module) -> NDArray[np.float32]:
        queries, documents = embed(model, texts.held_out[0][asked]), embed(model, texts.held_out[1])
        return search(queries @ documents.T, relevant, names[0][asked], names[1])

    runs = [Run(pairs.name, name, KIND, EPOCHS, settings, seed) for seed in range(1, arguments.seeds + 1)]
    measured = [train_arm(pairs, each, score, points=1)[0].scores[-1] for each in runs]
    everywhere, alone, elsewhere = np.stack(measured, axis=1)
    return Found(everywhere=everywhere, alone=alone, elsewhere=elsewhere)


def _settings(arguments: argparse.Namespace, arm: str) -> Settings:
    rows = read_tsv(arguments.settings, made_by="experiments.rivals.summary")
    best = next(row for row in rows if (row["set"], row["arm"], row["kind"]) == (arguments.together, arm, KIND))
    return Settings(float(best["temperature"]), float(best["learning_rate"]))


def _others(arguments: argparse.Namespace) -> list[Row]:
    """The rows of the table that are about other sets."""
    rows = read_tsv(arguments.output, made_by="experiments.rivals.together") if arguments.output.exists() else []
    return [dict(row) for row in rows if row["together"] != arguments.together]


def _rows(together: str, of_query: NDArray[np.str_], apart: Found, mixed: Found) -> Iterator[Row]:
    """One row a set, the one whose queries find most elsewhere first."""
    elsewhere = {name: float(apart.elsewhere[:, of_query == name].mean()) for name in np.unique(of_query).tolist()}
    for name, share in sorted(elsewhere.items(), key=lambda item: -item[1]):
        own = of_query == name
        yield {
            "together": together,
            "set": name,
            "queries": int(own.sum()),
            "found elsewhere, apart": round(share, 2),
            "found elsewhere, mixed": round(float(mixed.elsewhere[:, own].mean()), 2),
            "ndcg, apart": round(float(apart.everywhere[:, own].mean()), 3),
            "gain": gain(mixed.everywhere[:, own].astype(np.float16), apart.everywhere[:, own].astype(np.float16)),
            "gain, alone": gain(mixed.alone[:, own].astype(np.float16), apart.alone[:, own].astype(np.float16)),
        }


def _parse() -> argparse.Namespace:
    parser = pairs_parser("experiments.rivals.together", str(__doc__), EXAMPLE)
    parser.add_argument("--together", metavar="NAME", required=True)
    parser.add_argument("--arm", choices=ARMS, default="ours, without domains")
    parser.add_argument("--settings", type=Path, default=Path("experiments/rivals/together.tsv"))
    parser.add_argument("--limit", type=int, metavar="PAIRS")
    parser.add_argument("--seeds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    run("together", main)
