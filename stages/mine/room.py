"""What the stage takes of memory and disk."""

from batchwright.core.paths import PAIRS, SHARDS
from batchwright.core.room import check_disk, check_memory
from batchwright.formats.pairs import domains, pairs_size, scan_pairs
from batchwright.formats.shards import ShardSet
from batchwright.retrievers import Retriever
from batchwright.retrievers.common.retriever import SAMPLE, searched_size
from stages.mine.params import Mining

_TEXTS, _A_RANK, _COMPRESSED = 2, 20, 3
"""Bytes of texts in memory for each of their own, and of a ranked document, and how many times smaller shards are."""


def check_mining(retriever: Retriever, shards: ShardSet, params: Mining) -> None:
    """Check memory for the domain that takes the most, and disk for the shards with the texts that are mined.

    Raises:
        InputError: there is too little.
    """
    sizes = {domain: pairs_size(PAIRS, domain) for domain in domains(PAIRS)}
    for domain, (pairs, texts, _) in sizes.items():
        some = next(scan_pairs(PAIRS, domain, columns=["document"]))["document"][:SAMPLE].to_pylist()
        of = [domain] * len(some)
        searched = searched_size(retriever, some, of, documents=pairs, queries=pairs, k=params.depth)
        needed = _TEXTS * texts + searched + _A_RANK * pairs * params.depth
        check_memory(needed, f"mining in domain '{domain}'")
    every, texts, _ = (sum(each) for each in zip(*sizes.values(), strict=True))
    mined = shards.manifest.rows * params.count * texts / max(every, 1) / _COMPRESSED
    check_disk({SHARDS: mined + sum(shard.bytes for shard in shards.manifest.shards)}, "mining")
