"""Stage ``mine``: the contextual batches with hard negatives that a trained model finds (ANCE, arXiv 2007.00808)."""

import shutil
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, model_validator

from batchwright.by_domain.kept import keep, kept
from batchwright.core.atomic import atomic_dir, atomic_file
from batchwright.core.errors import InputError
from batchwright.core.files import write_json
from batchwright.core.fingerprint import code_fingerprint, files_fingerprint, fingerprint
from batchwright.core.names import NamedPath
from batchwright.core.params import Params, load_params
from batchwright.core.paths import NEGATIVES, PAIRS, RESULTS, SHARDS, VECTORS
from batchwright.core.runtime import scratch
from batchwright.core.spill import blocks_of, spilled_rows, spilled_texts
from batchwright.formats.models import model_hash
from batchwright.formats.negatives import KnownPositives, Negatives, judged
from batchwright.formats.pairs import domains, file_stem, pair_parts, scan_pairs, scan_texts
from batchwright.formats.shards import SHARD_SCHEMA, Shard, ShardSet, unscored, write_shard
from batchwright.formats.shards.manifest import write_card
from batchwright.formats.vectors import PairVectors, Provenance, VectorStore, blocks
from batchwright.retrievers import Retriever, load_retriever

BATCHES = SHARDS / "contextual"
OUTPUT = RESULTS / "mine"
NONE = -1


class Mining(Params):
    """Group ``mine.NAME``."""

    model: NamedPath
    """The folder of a trained model, such as ``models/biencoder``."""
    count: int = Field(default=4, gt=0)
    """Hard negatives per query."""
    depth: int = Field(default=50, gt=0)
    """Number of the model's top ranks to choose from."""

    @model_validator(mode="after")
    def _enough_ranks(self) -> "Mining":
        if self.depth < self.count:
            raise ValueError(f"{self.count} negatives cannot come from {self.depth} ranks")
        return self


class Mined:
    """The hard negatives mined for a domain's pairs, whose ``ids`` ``(N,)`` are sorted.

    ``rows`` ``(N, count)`` holds the rows of the ``documents`` mined for each pair, padded with -1.
    """

    def __init__(self, ids: NDArray[np.bytes_], documents: pa.LargeStringArray, rows: NDArray[np.int32]) -> None:
        self._ids, self._documents, self._rows = ids, documents, rows
        self.total = int((rows != NONE).sum())

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self._rows)

    def of(self, pair: str) -> list[str] | None:
        """Return the documents mined for the pair with this id, or None if there is no such pair."""
        place = int(np.searchsorted(self._ids, pair.encode()))
        if place == len(self) or self._ids[place] != pair.encode():
            return None
        rows = self._rows[place]
        texts: list[str] = self._documents.take(pa.array(rows[rows != NONE])).to_pylist()
        return texts


def main(name: str) -> str:
    """Write ``data/shards/NAME``, and the number of hard negatives found to ``results/mine/NAME.json``."""
    params = load_params(f"mine.{name}", Mining)
    shards = ShardSet.open(BATCHES)
    retriever = load_retriever(params.model)
    miner = model_hash(Path(params.model))
    store = VectorStore.open(VECTORS / Provenance.read(NEGATIVES, made_by="filter").vectors)
    content = files_fingerprint([PAIRS, NEGATIVES]), code_fingerprint(Path(__file__))
    parts = scratch("mine", fingerprint(params.model_dump(), miner, store.weights, content))
    negatives: dict[str, Mined] = {}
    for domain in domains(PAIRS):
        file = parts / file_stem(domain) / "negatives.npy"
        ledger = file.with_name("ledger.json")
        if kept(ledger, [file]) is None:
            rows = _mine(domain, store, retriever, params)
            with atomic_file(file) as temporary, temporary.open("wb") as handle:
                np.save(handle, rows)
            keep(ledger, [file], {})
        negatives[domain] = _open(domain, file)
    with atomic_dir(SHARDS / name) as folder:
        written = rewrite_shards(shards, negatives, folder)
        changes = {"format": 2, "shards": written, "models": {**shards.manifest.models, "miner": miner}}
        manifest = shards.manifest.model_copy(update=changes)
        manifest.write(folder)
        write_card(folder, manifest)
    shutil.rmtree(parts, ignore_errors=True)
    pairs, total = (
        sum(counts) for counts in zip(*((len(mined), mined.total) for mined in negatives.values()), strict=True)
    )
    missing = params.count * pairs - total
    write_json(OUTPUT / f"{name}.json", {"pairs": pairs, "mined": total, "missing": missing})
    return f"{name}: {total:,} hard negatives for {pairs:,} pairs, mined by '{params.model}'; {missing:,} missing"


def _mine(domain: str, store: VectorStore, retriever: Retriever, params: Mining) -> NDArray[np.int32]:
    """Return the rows ``(N, count)`` of the hard negatives that the model ranks highest."""
    vectors = store.of(domain).of_pairs(pair_parts(PAIRS, domain, "train"))
    negatives = Negatives.read(NEGATIVES, domain, len(vectors))
    if not len(vectors):
        return np.empty((0, params.count), np.int32)
    documents = np.unique(negatives.document_class, return_index=True)[1]
    texts = _documents(domain).take(pa.array(documents)).to_pylist()
    index = retriever.index(texts, [domain] * len(documents))
    queries = list(scan_texts(PAIRS, domain, "query", "train"))
    ranked, _ = index.search(queries, params.depth, [domain] * len(queries))
    return choose_hardest(documents[ranked], vectors, negatives, params.count)


def _open(domain: str, file: Path) -> Mined:
    chunks = chain([[]], blocks_of(scan_texts(PAIRS, domain, "id", "train")))  # a first one if there are no pairs
    ids = spilled_rows(np.array(chunk, "S32") for chunk in chunks)
    return Mined(ids, _documents(domain), np.load(file))


def _documents(domain: str) -> pa.LargeStringArray:
    return spilled_texts(batch["document"] for batch in scan_pairs(PAIRS, domain, "train", ["document"]))


def choose_hardest(
    ranked: NDArray[np.int64], surrogate: PairVectors, negatives: Negatives, count: int
) -> NDArray[np.int32]:
    """Choose each query's ``count`` best-ranked documents that are neither known positives nor false negatives.

    Args:
        ranked: ``(N, k)``, the rows of the top-ranked documents for the query of each pair, best first.
        surrogate: Vectors that judge as packing does (``Negatives.false``), unless someone judged otherwise.

    Returns:
        Rows ``(N, count)``, padded with -1.
    """
    known, irrelevant = KnownPositives(negatives), judged(negatives, relevant=False)
    chosen = np.full((len(ranked), count), NONE, dtype=np.int32)
    for block in blocks(len(ranked), rows_each=ranked.shape[1]):
        rows = ranked[block]
        documents = surrogate.documents(rows.ravel()).reshape(*rows.shape, -1)
        scores = np.einsum("nd,nkd->nk", surrogate.queries(block), documents)
        classes = negatives.query_class[block][:, None], negatives.document_class[rows]
        fit = ~negatives.false(block, scores, surrogate.likeness(block, rows)) | irrelevant.contains(*classes)
        fit &= ~known.contains(*classes)
        order = np.argsort(~fit, axis=1, kind="stable")[:, :count]
        hardest = np.where(np.take_along_axis(fit, order, axis=1), np.take_along_axis(rows, order, axis=1), NONE)
        chosen[block, : hardest.shape[1]] = hardest
    return chosen


def rewrite_shards(shards: ShardSet, negatives: Mapping[str, Mined], folder: Path) -> list[Shard]:
    """Write ``shards`` to ``folder`` with other hard negatives: those in ``negatives``, which is keyed by domain.

    Raises:
        InputError: a pair of the shards is not among those that negatives were mined for.
    """
    written, first = [], 0
    for shard in shards.manifest.shards:
        numbers = range(first, first + shard.batches)
        batches = [_replace(shards.batch(number), negatives, shards.folder) for number in numbers]
        written.append(write_shard(folder / shard.name, batches))
        first += shard.batches
    return written


def _replace(batch: pa.RecordBatch, negatives: Mapping[str, Mined], folder: Path) -> pa.RecordBatch:
    keys = zip(batch["domain"].to_pylist(), batch["id"].to_pylist(), strict=True)
    field = SHARD_SCHEMA.field("negatives")
    texts = pa.array([_mined(negatives, domain, pair, folder) for domain, pair in keys], type=field.type)
    batch = unscored(batch)  # a teacher's scores are of other negatives
    return batch.set_column(batch.schema.get_field_index(field.name), field, texts)


def _mined(negatives: Mapping[str, Mined], domain: str, pair: str, folder: Path) -> list[str]:
    texts = negatives[domain].of(pair) if domain in negatives else None
    if texts is None:
        raise InputError(f"{folder}: pair {pair} of domain '{domain}' is no training pair; run the stage 'pack' again")
    return texts
