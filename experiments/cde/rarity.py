"""What a domain's own word frequencies are worth, which is what a context tells (CDE, figure 8).

``python -m experiments.cde.rarity PAIRS/medquad.parquet PAIRS/squad.parquet ... --output FILE``

BM25 ranks a set's documents for its held-out queries by nDCG@10: with inverse document frequencies of its ``own``
documents, with those of all ``other`` sets together, as a model has them that never saw the set, and with ``none``.
``gain`` is what its own bring over the others', with its standard error over queries.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from experiments.rivals.training import ndcg_of

EXAMPLE = "python -m experiments.cde.rarity pairs/medquad.parquet pairs/squad.parquet --output rarity.tsv"


def main() -> str:
    """Print and write one row per set."""
    parser = new_parser("experiments.cde.rarity", str(__doc__), EXAMPLE)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    if len(arguments.data) < 2:
        raise InputError("one set has no others; name at least two")
    sets = {file.stem: _held_out(file) for file in arguments.data}
    counts = {name: document_counts(held_out.documents) for name, held_out in sets.items()}
    rows = [measure(name, sets, counts) for name in sets]
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    write_tsv(arguments.output, rows)
    return f"{len(rows)} sets in {arguments.output}"


def _held_out(file: Path) -> HeldOut:
    pairs = read_table(file)
    return collect(pairs, held_out_rows(pairs), seen=True)


def measure(name: str, sets: Mapping[str, HeldOut], counts: Mapping[str, Counter[str]]) -> Row:
    """The row of a set, beside all ``sets``, given in how many documents of each a word stands."""
    vocabulary = sorted(counts[name])
    ranker = Ranker.of(sets[name], vocabulary)
    others = [other for other in sets if other != name]
    elsewhere = sum((counts[other] for other in others), Counter[str]())
    weights = {
        "own": rarity(vocabulary, counts[name], len(sets[name].documents)),
        "others": rarity(vocabulary, elsewhere, sum(len(sets[other].documents) for other in others)),
        "none": np.ones(len(vocabulary)),
    }
    scores = {of: ranker.ndcg(each) for of, each in weights.items()}
    means = {of: round(float(each.mean(dtype=np.float64)), 3) for of, each in scores.items()}
    pair = (scores[of][None].astype(np.float16) for of in ("own", "others"))
    return {"set": name, "queries": len(scores["own"]), **means, "gain": gain(*pair)}


def rarity(vocabulary: Sequence[str], counts: Mapping[str, int], documents: int) -> NDArray[np.float64]:
    """The inverse document frequency of each word as BM25 has it; a word that is nowhere is the rarest."""
    standing = np.array([counts.get(word, 0) for word in vocabulary])
    frequencies: NDArray[np.float64] = np.log(1 + (documents - standing + 0.5) / (standing + 0.5))
    return frequencies


@dataclass(frozen=True)
class Ranker:
    """BM25 without its weights of words: which words ``queries`` have ``(Q, words)``, and how much of each is in
    ``documents`` ``(N, words)``."""

    queries: csr_matrix
    documents: csr_matrix
    relevant: Sequence[Sequence[int]]

    @classmethod
    def of(cls, held_out: HeldOut, vocabulary: Sequence[str]) -> "Ranker":
        """Count words, those of ``vocabulary`` only."""
        number = {word: place for place, word in enumerate(vocabulary)}
        documents, queries = (_counts(texts, number) for texts in (held_out.documents, held_out.queries))
        lengths = documents.sum(axis=1).A1
        saturation = np.repeat(K1 * (1 - B + B * lengths / lengths.mean()), np.diff(documents.indptr))
        documents.data = documents.data * (K1 + 1) / (documents.data + saturation)
        return cls(queries.sign(), documents, held_out.relevant)

    def ndcg(self, weights: NDArray[np.float64]) -> NDArray[np.float32]:
        """nDCG@10 of each query ``(Q,)`` if words have these weights."""
        return ndcg_of((self.queries.multiply(weights).tocsr() @ self.documents.T).toarray(), self.relevant)


def _counts(texts: Sequence[str], number: Mapping[str, int]) -> csr_matrix:
    """How often each word stands in each text ``(N, words)``."""
    counts = [Counter(number[word] for word in words_of(text) if word in number) for text in texts]
    starts = np.cumsum([0, *map(len, counts)])
    places = [place for of_text in counts for place in of_text]
    values = [float(count) for of_text in counts for count in of_text.values()]
    return csr_matrix((values, places, starts), shape=(len(texts), len(number)))


if __name__ == "__main__":
    run("rarity", main)
