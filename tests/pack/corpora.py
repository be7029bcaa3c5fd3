"""Corpora ready to pack."""

from collections.abc import Callable

from stages.cluster import stage as cluster
from stages.filter import stage as judge
from tests.helpers import plant_vectors, write_pairs

RunPack = Callable[[str], str]


def prepare(**domains: list[tuple[str, str]]) -> None:
    """Write pairs, plant vectors, filter and cluster, in the working directory."""
    for domain, pairs in domains.items():
        write_pairs(domain, pairs)
    plant_vectors()
    judge.main()
    cluster.main()


def with_duplicates(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return ``pairs`` and 30 more that repeat one of their queries or documents, apart from case or spaces."""
    more = [(query.upper(), f"topic0 more {number}") for number, (query, _) in enumerate(pairs[:12])]
    more += [
        (f"topic1 more {number}", document.replace(" ", "\t ")) for number, (_, document) in enumerate(pairs[6:24])
    ]
    return pairs + more
