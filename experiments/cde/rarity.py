"""What a domain's own word frequencies are worth, which is what a context tells (CDE, figure 8).

``python -m experiments.cde.rarity PAIRS/medquad.parquet PAIRS/squad.parquet ... --output FILE``

BM25 ranks a set's documents for its held-out queries by nDCG@10: with inverse document frequencies of its ``own``
documents, with those of all ``other`` sets together, as a model has them that never saw the set, and with ``none``.
``gain`` is what its own bring over the others', with its standard error over queries.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from batchwright.core.command import new_parser, run
from batchwright.core.errors import InputError
from batchwright.core.files import write_tsv
from batchwright.retrievers.common.words import K1, B
from experiments.cde.idf import document_counts, words_of
from experiments.common.workspace import Row
from experiments.rivals.sets import HeldOut, collect, held_out_rows, read_table
from experiments.rivals.summary import gain
from experiments.rivals.training import DEPTH, ndcg

EXAMPLE = "python -m experiments.cde.rarity pairs/medquad.parquet pairs/squad.parquet --output rarity.tsv"
Scores = NDArray[np.float32]


def main() -> str:
    """Print and write one row per set."""
    parser = new_parser("experiments.cde.rarity", str(__doc__), EXAMPLE)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    if len(arguments.data) < 2:
        raise InputError("one set has no others; name at least two")
    sets = {file.stem: collect(pairs, held_out_rows(pairs)) for file in arguments.data for pairs in [read_table(file)]}
    rows = [measure(name, sets) for name in sets]
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    write_tsv(arguments.output, rows)
    return f"{len(rows)} sets in {arguments.output}"


def measure(name: str, sets: Mapping[str, HeldOut]) -> Row:
    """The row of a set, beside all ``sets``."""
    own = sets[name].documents
    others = [document for other, held_out in sets.items() if other != name for document in held_out.documents]
    vocabulary = sorted(document_counts(own))
    rarities = {"own": rarity(vocabulary, own), "others": rarity(vocabulary, others), "none": np.ones(len(vocabulary))}
    scores = {of: search(sets[name], vocabulary, weights) for of, weights in rarities.items()}
    means = {of: round(float(each.mean(dtype=np.float64)), 3) for of, each in scores.items()}
    pair = (scores[of][None].astype(np.float16) for of in ("own", "others"))
    return {"set": name, "queries": len(scores["own"]), **means, "gain": gain(*pair)}


def rarity(vocabulary: Sequence[str], documents: Sequence[str]) -> NDArray[np.float64]:
    """The inverse document frequency of each word as BM25 has it; a word that is nowhere is the rarest."""
    counts, total = document_counts(documents), len(documents)
    found = np.array([counts[word] for word in vocabulary])
    frequencies: NDArray[np.float64] = np.log(1 + (total - found + 0.5) / (found + 0.5))
    return frequencies


def search(held_out: HeldOut, vocabulary: Sequence[str], weights: NDArray[np.float64]) -> Scores:
    """nDCG@10 of each query ``(Q,)`` if words have these weights."""
    number = {word: place for place, word in enumerate(vocabulary)}
    documents, queries = (_counts(texts, number) for texts in (held_out.documents, held_out.queries))
    lengths = documents.sum(axis=1).A1
    saturation = np.repeat(K1 * (1 - B + B * lengths / lengths.mean()), np.diff(documents.indptr))
    documents.data = documents.data * (K1 + 1) / (documents.data + saturation)
    scores = (queries.sign().multiply(weights).tocsr() @ documents.T).toarray()
    return ndcg(np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH], held_out.relevant)


def _counts(texts: Sequence[str], number: Mapping[str, int]) -> csr_matrix:
    """How often each word stands in each text ``(N, words)``."""
    counts = [Counter(number[word] for word in words_of(text) if word in number) for text in texts]
    starts = np.cumsum([0, *map(len, counts)])
    places = [place for of_text in counts for place in of_text]
    values = [float(count) for of_text in counts for count in of_text.values()]
    return csr_matrix((values, places, starts), shape=(len(texts), len(number)))


if __name__ == "__main__":
    run("rarity", main)
