"""Put small domains together, to be packed as one."""

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import accumulate
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from batchwright.core.normal_form import normal_form
from batchwright.formats.clusters import NONE, Clusters
from batchwright.formats.negatives import Negatives
from batchwright.formats.vectors import PairVectors
from stages.pack.domain import Domain

Classes = NDArray[np.int32]


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
        pairs=pa.concat_tables([domain.pairs for domain in domains]).combine_chunks(),
        negatives=_merge_negatives(domains),
        vectors=vectors,
        surrogate=vectors if shared else _merge_vectors([domain.surrogate for domain in domains]),
        judge=domains[0].judge,
    )


def merge_clusters(every: Sequence[Clusters]) -> Clusters:
    """Return the clusters of several domains, numbered one domain after the other."""
    numbers = zip(every, _starts([len(clusters.centroids) for clusters in every]), strict=True)
    parts = [np.where(own.assignment == NONE, NONE, own.assignment + np.int32(first)) for own, first in numbers]
    return Clusters(
        assignment=np.concatenate(parts), centroids=np.concatenate([clusters.centroids for clusters in every])
    )


def _loaded(vectors: PairVectors) -> PairVectors:
    used, rows = np.unique(vectors.rows, return_inverse=True)
    return PairVectors(vectors=vectors.vectors[used], rows=rows.reshape(2, -1))


def _merge_vectors(every: Sequence[PairVectors]) -> PairVectors:
    first = _starts([len(each.vectors) for each in every])
    rows = [each.rows.astype(np.int64) + start for each, start in zip(every, first, strict=True)]
    return PairVectors(vectors=np.concatenate([each.vectors for each in every]), rows=np.concatenate(rows, axis=1))


def _merge_negatives(domains: Sequence[Domain]) -> Negatives:
    """Return the data for masks of all pairs; how alike a false negative must be, the query's own domain says."""
    first = _starts([len(domain.pairs) for domain in domains])
    numbers = zip(first, _merge_classes(domains, "query"), _merge_classes(domains, "document"), strict=True)
    every = [_renumbered(domain.negatives, *new) for domain, new in zip(domains, numbers, strict=True)]
    names = [field.name for field in fields(Negatives)]
    return Negatives(**{name: np.concatenate([getattr(negatives, name) for negatives in every]) for name in names})


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
    own: list[Classes] = [getattr(domain.negatives, f"{side}_class") for domain in domains]
    sizes = [int(classes.max(initial=-1)) + 1 for classes in own]
    old = np.concatenate([classes + start for classes, start in zip(own, _starts(sizes), strict=True)])
    forms = [normal_form(text) for domain in domains for text in domain.pairs[side].to_pylist()]
    form = np.unique(forms, return_inverse=True)[1].reshape(-1) + sum(sizes)
    edges = coo_matrix((np.ones(len(old), bool), (old, form)), (count := int(form.max()) + 1, count))
    component: Classes = connected_components(edges, directed=False)[1]
    return np.split(component[: sum(sizes)], np.cumsum(sizes)[:-1])


def _starts(sizes: Sequence[int]) -> list[int]:
    """Return the sum of all sizes before each."""
    return [0, *accumulate(sizes[:-1])]
