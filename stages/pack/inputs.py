"""The artifacts that packing reads, opened a domain at a time, in any process."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from batchwright.by_domain.spread import Map
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import files_fingerprint
from batchwright.core.paths import CLUSTERS, NEGATIVES, PAIRS, VECTORS
from batchwright.core.spill import SpilledRows, SpilledTexts, spilled
from batchwright.formats.clusters import NONE, Clusters, read_assignment, read_draws
from batchwright.formats.negatives import EVERY_PAIR, Negatives
from batchwright.formats.pairs import SAYS_NOTHING, PairsPart, file_stem, pair_parts, pairs_file
from batchwright.formats.vectors import Provenance, VectorStore
from stages.pack.domain import Domain
from stages.pack.judge import Judge
from stages.pack.params import JudgeParams
from stages.pack.small_domains import in_memory, merge_clusters, merge_domains

_TEXTS = ("id", "query", "document", "domain")


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The vectors that clusters and negatives were made from, and the judge if there is one.

    ``made_with`` are the parameters of both stages, and ``together`` the domains that are packed as one, by their batch
    name.
    """

    vectors: VectorStore
    surrogate: VectorStore
    judge: Judge | None
    made_with: Mapping[str, Mapping[str, Any]]
    together: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def models(self) -> dict[str, str]:
        """Hashes of the weights of all models."""
        models = {"clusters": self.vectors.weights, "surrogate": self.surrogate.weights}
        return models | ({"judge": self.judge.weights} if self.judge else {})

    def open(self, name: str, do_parts: Map = map) -> tuple[Domain, list[Clusters]]:
        """Open a domain and its clusterings, or those that are packed as ``name``.

        Raises:
            InputError: a file is missing or damaged, or the judge has nothing to decide.
        """
        names = self.together.get(name, [name])
        if len(names) == 1:
            domain = self._open(names[0], do_parts)
            return domain, read_draws(CLUSTERS, names[0], len(domain.pairs))
        domains = [in_memory(self._open(name, map)) for name in names]
        draws = (read_draws(CLUSTERS, name, len(domain.pairs)) for name, domain in zip(names, domains, strict=True))
        return merge_domains(domains), [merge_clusters(draw) for draw in zip(*draws, strict=True)]

    def _open(self, name: str, do_parts: Map) -> Domain:
        parts = pair_parts(PAIRS, name, "train")
        pairs = map_pairs(parts)
        negatives = Negatives.read(NEGATIVES, name, len(pairs))
        if self.judge and negatives.likeness == EVERY_PAIR:
            raise InputError(
                "pack.judge: is asked about pairs near the limit of filter.likeness, which is null; "
                "set it to auto or a number, or remove pack.judge"
            )
        vectors = self.vectors.of(name).of_pairs(parts, do_parts)
        surrogate = vectors if self.vectors == self.surrogate else self.surrogate.of(name).of_pairs(parts, do_parts)
        return Domain(pairs=pairs, negatives=negatives, vectors=vectors, surrogate=surrogate, judge=self.judge)

    def sizes(self, name: str) -> tuple[int, int]:
        """Return how many training pairs a domain has: those in clusters, and all."""
        assignment = read_assignment(CLUSTERS, name)
        return int(np.count_nonzero(assignment != NONE)), len(assignment)

    def fingerprint(self, name: str) -> str:
        """Fingerprint of a domain's files."""
        folders = [folder / file_stem(name) for folder in (CLUSTERS, NEGATIVES)]
        vectors = dict.fromkeys([self.vectors.files(name), self.surrogate.files(name)])  # usually one folder
        return files_fingerprint([pairs_file(PAIRS, name), *vectors, *folders])


@dataclass(frozen=True)
class Source:
    """The domain ``name`` of ``inputs``; ``do_parts`` helps to open it here, but does not travel."""

    inputs: Inputs
    name: str
    do_parts: Map = map

    @cached_property
    def opened(self) -> tuple[Domain, list[Clusters]]:
        """The domain and its clusterings, opened once in each process."""
        return self.inputs.open(self.name, self.do_parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return Source, (self.inputs, self.name)


def open_inputs(judging: JudgeParams | None) -> Inputs:
    """Open the vectors and the judge, and check that pairs, vectors, clusters and negatives belong together.

    Raises:
        InputError: clusters or negatives were made from other pairs or vectors, or there is no such judge.
    """
    vectors, clustering = _vectors_of(CLUSTERS, "cluster")
    surrogate, filtering = _vectors_of(NEGATIVES, "filter")
    return Inputs(
        vectors=vectors,
        surrogate=surrogate,
        judge=Judge(judging) if judging else None,
        made_with={"cluster": clustering, "filter": filtering},
    )


def _vectors_of(folder: Path, stage: str) -> tuple[VectorStore, dict[str, Any]]:
    """Open the vectors that ``folder`` was made from; return them and the stage's parameters.

    Raises:
        InputError: they or the pairs have changed since.
    """
    source = Provenance.read(folder, stage)
    store = VectorStore.open(VECTORS / source.vectors)
    if (source.weights, source.pairs) != (store.weights, files_fingerprint([PAIRS])):
        raise InputError(f"{folder}: the pairs or vectors it was made from have changed; run the stage '{stage}' again")
    return store, source.parameters


def map_pairs(parts: Iterable[PairsPart]) -> pa.Table:
    """Return the pairs of all parts, uncompressed and memory-mapped, so that they can be read in any order.

    Columns have large types; ``negatives`` come after the other texts; ``split`` is left out, and so are ``scores``,
    ``weight`` and ``metadata`` if no pair has any.
    """
    columns = {name: SpilledTexts() for name in (*_TEXTS, "metadata")}
    lists, lengths = SpilledTexts(), SpilledRows(np.int64)
    scores, counts, weights = SpilledRows(np.float32), SpilledRows(np.int64), SpilledRows(np.float32)
    further = dict.fromkeys(("weight", "metadata"), False)
    for batch in chain.from_iterable(part.read([*_TEXTS, "negatives", "scores", *further]) for part in parts):
        for name, texts in columns.items():
            texts.add(batch[name])
        lists.add(batch["negatives"].flatten())
        lengths.add(pc.list_value_length(batch["negatives"]).to_numpy())
        scores.add(batch["scores"].flatten().to_numpy())
        counts.add(pc.list_value_length(batch["scores"]).to_numpy())
        weights.add(batch["weight"].to_numpy())
        for name in further:
            further[name] |= pc.any(pc.not_equal(batch[name], SAYS_NOTHING[name])).as_py() or False
    table = {name: texts.array() for name, texts in columns.items()}
    metadata = table.pop("metadata")
    table["negatives"] = _lists(lists.array(), lengths.array())
    if len(numbers := scores.array()):
        table["scores"] = _lists(pa.array(numbers), counts.array())
    if further["weight"]:
        table["weight"] = pa.array(weights.array())
    if further["metadata"]:
        table["metadata"] = metadata
    return pa.table(table)


def _lists(values: pa.Array, lengths: NDArray[np.int64]) -> pa.LargeListArray:
    """Cut ``values`` into lists of ``lengths`` ``(N,)``."""
    ends = spilled(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    offsets = pa.Array.from_buffers(pa.int64(), len(ends), [None, pa.py_buffer(ends)])
    return pa.LargeListArray.from_arrays(offsets, values)
