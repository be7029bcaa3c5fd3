"""How far the rarity of words shifts between domains: figure 8 of *Contextual Document Embeddings* (arXiv 2410.02525).

``python -m experiments.cde.idf DATA [--domains ...] [--documents N] --output FILE``

``DATA`` is a folder like the ``data`` that ``dvc repro ingest`` makes. Of each domain, two disjoint samples of
``--documents`` training documents are drawn. A cell is the mean, over the words of at least ``FEWEST`` documents of two
samples, of the difference of a word's IDF between them: of one domain's two samples, or of one sample of each domain.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import mean

import numpy as np

from batchwright.core.command import new_parser, run
from batchwright.core.errors import InputError
from batchwright.core.files import write_tsv
from batchwright.formats.pairs import domains, read_pairs
from experiments.common.workspace import Row

FEWEST = 10
"""Documents of two samples together in which a word must stand."""
_WORD = re.compile(r"\w+")


def main() -> str:
    """Print and write one row per domain, with a column for each."""
    parser = new_parser("experiments.cde.idf", str(__doc__), "python -m experiments.cde.idf data --output idf.tsv")
    parser.add_argument("data", type=Path)
    parser.add_argument("--domains", nargs="+", help="only these domains of the data")
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    names = arguments.domains or domains(arguments.data / "pairs")
    samples = {name: two_samples(arguments.data, name, arguments.documents) for name in names}
    rows: list[Row] = []
    for name, (first, second) in samples.items():
        others = {other: second if other == name else samples[other][0] for other in names}
        shifts = {other: round(idf_shift(first, words), 3) for other, words in others.items()}
        rows.append({"domain": name, **shifts})
        print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    write_tsv(arguments.output, rows)
    return f"{len(rows)} domains in {arguments.output}"


def two_samples(data: Path, name: str, count: int) -> tuple[Counter[str], Counter[str]]:
    """In how many documents each word stands, in two disjoint samples of ``count`` of a domain's documents."""
    first, second = samples(data, name, count, 2)
    return document_counts(first), document_counts(second)


def samples(data: Path, name: str, count: int, number: int) -> list[list[str]]:
    """Disjoint samples, ``number`` of them, of ``count`` different documents of a domain's training pairs.

    Raises:
        InputError: there are too few.
    """
    different = sorted(set(read_pairs(data / "pairs", name, "train")["document"].to_pylist()))
    if len(different) < number * count:
        raise InputError(f"domain {name}: has {len(different)} documents; lower --documents from {count}")
    drawn = np.random.default_rng(0).permutation(len(different))[: number * count].reshape(number, count)
    return [[different[row] for row in rows] for rows in drawn.tolist()]


def document_counts(documents: Iterable[str]) -> Counter[str]:
    """In how many of the documents each word stands."""
    return Counter(word for text in documents for word in set(words_of(text)))


def words_of(text: str) -> list[str]:
    """The words of a text."""
    return _WORD.findall(text.lower())


def idf_shift(one: Counter[str], other: Counter[str]) -> float:
    """The mean difference of a word's IDF between samples of the same size; a word counts once more than it occurs, so
    that it may be missing in one."""
    frequent = [word for word, count in (one + other).items() if count >= FEWEST]
    return float(mean(abs(np.log((one[word] + 1) / (other[word] + 1))) for word in frequent))


if __name__ == "__main__":
    run("idf", main)
