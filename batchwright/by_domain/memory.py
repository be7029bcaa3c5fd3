"""How much memory the work on a domain takes at its peak, and how much disk while it is done."""

from collections.abc import Callable, Iterable

from batchwright.core.paths import PAIRS
from batchwright.core.room import check_disk, check_memory
from batchwright.core.runtime import beam_is_asked, beam_processes, scratch
from batchwright.formats.pairs import pairs_file, pairs_size

BASE, A_PROCESS, A_PAIR, A_RESIDENT_PAIR, RESIDENT = 300e6, 100e6, 150, 4_000, 100_000
"""Bytes of a process, of one more that is forked, and of a domain: ``python -m benchmarks.scale`` stays below. Only of
some pairs are vectors or words in memory."""


def texts_of(domain: str) -> float:
    """Bytes of the texts of a domain's pairs; 0 if there are none yet, or if this names small domains together."""
    return float(pairs_size(PAIRS, domain).bytes) if pairs_file(PAIRS, domain).exists() else 0.0


def check_domains(
    domains: Iterable[str],
    memory_of: Callable[[str], float],
    processes: int,
    spilled_of: Callable[[str], float] = texts_of,
) -> None:
    """Check that there is memory for the largest of ``domains``, as many as are done at the same time.

    On this machine, these are as many as ``processes``. And disk for what lies in the scratch folder meanwhile
    (``batchwright.core.spill``), by default their texts.

    Raises:
        InputError: there is too little.
    """
    needed = {domain: memory_of(domain) for domain in domains}
    if not needed:
        return
    many = at_once(processes)
    largest = sorted(needed, key=needed.__getitem__)[-many:]
    base = BASE * min(many, len(largest)) if beam_is_asked() else BASE + A_PROCESS * (many - 1)
    names = " with ".join(f"domain '{domain}'" for domain in reversed(largest))
    check_memory(base + sum(map(needed.__getitem__, largest)), names)
    check_disk({scratch("spill"): sum(map(spilled_of, largest))}, names)


def at_once(processes: int) -> int:
    """How many domains or parts are done at a time, where on this machine ``processes`` do them."""
    return beam_processes() if beam_is_asked() else processes


def pairs_of(*domains: str) -> int:
    """Number of the pairs of ``domains``, of all splits."""
    return sum(pairs_size(PAIRS, domain).pairs for domain in domains)


def of_pairs(*domains: str) -> float:
    """Bytes that the work on the pairs of ``domains``, which are done together, takes."""
    pairs = pairs_of(*domains)
    return float(A_PAIR * pairs + A_RESIDENT_PAIR * min(pairs, RESIDENT))
