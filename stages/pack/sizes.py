"""Check that every domain can fill a batch."""

from collections.abc import Mapping

from batchwright.core.errors import InputError
from stages.pack.params import PackParams


def check_sizes(sizes: Mapping[str, tuple[int, int]], params: PackParams) -> None:
    """Check the domains' numbers of training pairs, with and without those that the filter dropped.

    Raises:
        InputError: a domain cannot fill one batch, a weight names an unknown domain, or there are no pairs.
    """
    if unknown := sorted(params.weights.keys() - sizes.keys()):
        raise InputError(f"pack.weights: unknown domain {unknown[0]!r}; the domains are {', '.join(sorted(sizes))}")
    if not any(kept for kept, _ in sizes.values()):
        raise InputError("no domain has training pairs")
    small = {domain: size for domain, size in sorted(sizes.items()) if 0 < size[0] < params.batch_size}
    if small:
        listed = ", ".join(f"'{domain}' ({_counted(*size)})" for domain, size in list(small.items())[:10])
        more = f" and {len(small) - 10} more" if len(small) > 10 else ""
        raise InputError(
            f"pack.batch_size is {params.batch_size}, but these domains hold fewer training pairs: {listed}{more}; "
            "lower pack.batch_size, or give small domains the same name in ingest.sources"
        )


def _counted(kept: int, before: int) -> str:
    return f"{kept}, of {before} before the filter" if kept < before else str(kept)
