"""Small domains: those that cannot fill a batch, and how several are packed as one."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import accumulate
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from batchwright.core.errors import InputError
from batchwright.core.normal_form import normal_form
from batchwright.formats.clusters import NONE, Clusters
from batchwright.formats.negatives import Negatives
from batchwright.formats.shards import SmallDomain
from batchwright.formats.vectors import PairVectors
from stages.pack.domain import Domain
from stages.pack.params import PackParams

Classes = NDArray[np.int32]

TOGETHER = "small domains"
"""Batch name of merged small domains."""


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
    """Return the domains that share batches, by the name of these batches; a domain that is left out is by itself."""
    together: dict[str, list[str]] = {}
    for name in sorted(sizes):
        together.setdefault((small[name].packed_as if name in small else None) or name, []).append(name)
    return together


def described(small: Mapping[str, SmallDomain], params: PackParams) -> str:
    """Say what was done with small domains."""
    sharing: dict[str | None, list[int]] = {}
    for domain in small.values():
        sharing.setdefault(domain.packed_as, []).append(domain.pairs)
    by_fate: dict[str, list[int]] = {}
    for packed_as, pairs in sharing.items():
        together = "packed together" if len(pairs) > 1 else ""
        repeated = "completed with repeated pairs" if sum(pairs) < params.batch_size else ""
        fate = " and ".join(filter(None, [together, repeated])) if packed_as else "left out"
        by_fate.setdefault(fate, []).extend(pairs)
    return "".join(
        f"; {len(pairs):,} domain{'s' if len(pairs) > 1 else ''} smaller than a batch ({sum(pairs):,} pairs) {fate}"
        for fate, pairs in by_fate.items()
    )


def _packed_as(name: str, params: PackParams) -> str | None:
    """Return the batch name of a small domain. Domains that share batches have the same weight."""
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


def in_memory(domain: Domain) -> Domain:
    """Return a domain without open files, of which there would be too many with thousands of domains."""
    vectors = _loaded(domain.vectors)
    surrogate = vectors if domain.surrogate is domain.vectors else _loaded(domain.surrogate)
    pairs = domain.pairs.take(np.arange(len(domain.pairs)))
    return replace(domain, pairs=pairs, vectors=vectors, surrogate=surrogate)


def merge_domains(domains: Sequence[Domain]) -> Domain:
    """Return the pairs of ``domains``, one domain after the other, with the data for masks.

    Texts of different domains are duplicates if their normal forms are equal.
    """
    vectors = _merge_vectors([domain.vectors for domain in domains])
    shared = all(domain.surrogate is domain.vectors for domain in domains)
    return Domain(
        pairs=pa.concat_tables([domain.pairs for domain in domains], promote_options="default").combine_chunks(),
        negatives=_merge_negatives(domains),
        vectors=vectors,
        surrogate=vectors if shared else _merge_vectors([domain.surrogate for domain in domains]),
        judge=domains[0].judge,
    )


def merge_clusters(parts: Sequence[Clusters]) -> Clusters:
    """Return the clusters of several domains, numbered one domain after the other."""
    starts = _starts([len(part.centroids) for part in parts])
    assignments = [
        np.where(part.assignment == NONE, NONE, part.assignment + np.int32(start))
        for part, start in zip(parts, starts, strict=True)
    ]
    return Clusters(
        assignment=np.concatenate(assignments), centroids=np.concatenate([part.centroids for part in parts])
    )


def _loaded(vectors: PairVectors) -> PairVectors:
    used, rows = np.unique(vectors.rows, return_inverse=True)
    return PairVectors(vectors=vectors.vectors[used], rows=rows.reshape(2, -1))


def _merge_vectors(parts: Sequence[PairVectors]) -> PairVectors:
    starts = _starts([len(part.vectors) for part in parts])
    rows = [part.rows.astype(np.int64) + start for part, start in zip(parts, starts, strict=True)]
    return PairVectors(vectors=np.concatenate([part.vectors for part in parts]), rows=np.concatenate(rows, axis=1))


def _merge_negatives(domains: Sequence[Domain]) -> Negatives:
    """Return the data for masks of all pairs; how alike a false negative must be, the query's own domain says."""
    starts = _starts([len(domain.pairs) for domain in domains])
    numbers = zip(starts, _merge_classes(domains, "query"), _merge_classes(domains, "document"), strict=True)
    parts = [_renumbered(domain.negatives, *new) for domain, new in zip(domains, numbers, strict=True)]
    names = [field.name for field in fields(Negatives)]
    return Negatives(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def _renumbered(negatives: Negatives, first: int, queries: Classes, documents: Classes) -> Negatives:
    """Return ``negatives`` with rows numbered from ``first``, and class c as ``queries[c]`` or ``documents[c]``."""
    return replace(
        negatives,
        likeness=np.full(len(negatives), negatives.likeness),
        query_class=queries[negatives.query_class],
        document_class=documents[negatives.document_class],
        mined=np.where(negatives.mined < 0, -1, negatives.mined + np.int32(first)),
        judged=np.stack([queries[negatives.judged[:, 0]], documents[negatives.judged[:, 1]]], axis=1),
    )


def _merge_classes(domains: Sequence[Domain], side: Literal["query", "document"]) -> list[Classes]:
    """Return the new number of each domain's classes of duplicates; classes are joined if they hold equal texts."""
    by_domain: list[Classes] = [getattr(domain.negatives, f"{side}_class") for domain in domains]
    sizes = [int(classes.max(initial=-1)) + 1 for classes in by_domain]
    old = np.concatenate([classes + start for classes, start in zip(by_domain, _starts(sizes), strict=True)])
    forms = [normal_form(text) for domain in domains for text in domain.pairs[side].to_pylist()]
    form = np.unique(forms, return_inverse=True)[1].reshape(-1) + sum(sizes)
    edges = coo_matrix((np.ones(len(old), bool), (old, form)), (count := int(form.max()) + 1, count))
    component: Classes = connected_components(edges, directed=False)[1]
    return np.split(component[: sum(sizes)], np.cumsum(sizes)[:-1])


def _starts(sizes: Sequence[int]) -> list[int]:
    """Return the sum of all sizes before each."""
    return [0, *accumulate(sizes[:-1])]
