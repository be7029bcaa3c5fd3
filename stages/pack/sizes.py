"""Find the domains that cannot fill a batch, and the domains that are packed together."""

from collections.abc import Mapping

from batchwright.core.errors import InputError
from batchwright.formats.shards import SmallDomain
from stages.pack.params import PackParams

TOGETHER = "small domains"
"""The name that the batches of small domains go by which share them."""


def small_domains(sizes: Mapping[str, tuple[int, int]], params: PackParams) -> dict[str, SmallDomain]:
    """Return the domains that cannot fill one batch, given how many training pairs each has, kept and in all.

    Raises:
        InputError: such a domain is to be refused, a weight names an unknown domain, or there are no pairs.
    """
    if unknown := sorted(params.weights.keys() - sizes.keys()):
        raise InputError(f"pack.weights: unknown domain {unknown[0]!r}; the domains are {', '.join(sorted(sizes))}")
    if not any(kept for kept, _ in sizes.values()):
        raise InputError("no domain has training pairs")
    small = {domain: size for domain, size in sorted(sizes.items()) if 0 < size[0] < params.batch_size}
    if small and params.small_domains == "refuse":
        raise InputError(_refusal(small, params.batch_size))
    return {name: SmallDomain(pairs=kept, packed_as=_packed_as(name, params)) for name, (kept, _) in small.items()}


def packed_together(sizes: Mapping[str, tuple[int, int]], small: Mapping[str, SmallDomain]) -> dict[str, list[str]]:
    """Return the domains that share batches, by the name that these go by; a domain that is left out is by itself."""
    together: dict[str, list[str]] = {}
    for name in sorted(sizes):
        together.setdefault((small[name].packed_as if name in small else None) or name, []).append(name)
    return together


def described(small: Mapping[str, SmallDomain], params: PackParams) -> str:
    """Say what was done with small domains."""
    if not small:
        return ""
    done = {"merge": "packed together", "refill": "completed with repeated pairs", "drop": "left out"}
    pairs, many = sum(each.pairs for each in small.values()), "s" if len(small) > 1 else ""
    return f"; {len(small):,} domain{many} smaller than a batch ({pairs:,} pairs) {done[params.small_domains]}"


def _packed_as(name: str, params: PackParams) -> str | None:
    """Return the name that a small domain's batches go by. Domains that share batches have the same weight."""
    weight = params.weights.get(name, 1.0)
    together = TOGETHER if weight == 1 else f"{TOGETHER}, weight {weight:g}"
    return {"merge": together, "refill": name}.get(params.small_domains)


def _refusal(small: Mapping[str, tuple[int, int]], batch_size: int) -> str:
    listed = ", ".join(f"'{domain}' ({_counted(*size)})" for domain, size in list(small.items())[:10])
    more = f" and {len(small) - 10} more" if len(small) > 10 else ""
    return (
        f"pack.batch_size is {batch_size}, but these domains hold fewer training pairs: {listed}{more}; "
        "lower pack.batch_size, or set pack.small_domains to merge, refill or drop"
    )


def _counted(kept: int, before: int) -> str:
    return f"{kept}, of {before} before the filter" if kept < before else str(kept)
