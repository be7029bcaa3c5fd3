"""Rewrite the contextual batches with hard negatives mined by a trained model."""

import shutil
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.by_domain.kept import keep, kept
from batchwright.core.atomic import atomic_dir, atomic_file
from batchwright.core.files import write_json
from batchwright.core.fingerprint import code_fingerprint, files_fingerprint, fingerprint
from batchwright.core.params import load_params
from batchwright.core.paths import NEGATIVES, PAIRS, RESULTS, SHARDS, VECTORS
from batchwright.core.runtime import scratch
from batchwright.core.spill import blocks_of, spilled_rows, spilled_texts
from batchwright.formats.models import model_hash
from batchwright.formats.negatives import Negatives
from batchwright.formats.pairs import domains, file_stem, pair_parts, scan_pairs, scan_texts
from batchwright.formats.shards import ShardSet
from batchwright.formats.shards.card import write_card
from batchwright.formats.vectors import Provenance, VectorStore
from batchwright.retrievers import Retriever, load_retriever
from stages.mine.choose import choose_hardest
from stages.mine.params import Mining
from stages.mine.rewrite import Mined, rewrite_shards

BATCHES = SHARDS / "contextual"
OUTPUT = RESULTS / "mine"


def main(name: str) -> str:
    """Write ``data/shards/NAME``, and the number of hard negatives found to ``results/mine/NAME.json``."""
    params = load_params(f"mine.{name}", Mining)
    shards = ShardSet.open(BATCHES)
    retriever = load_retriever(params.model)
    miner = model_hash(Path(params.model))
    store = VectorStore.open(VECTORS / Provenance.read(NEGATIVES, made_by="filter").vectors)
    content = files_fingerprint([PAIRS, NEGATIVES]), code_fingerprint(Path(__file__).parent)
    parts = scratch("mine", fingerprint(params.model_dump(), miner, store.weights, content))
    negatives: dict[str, Mined] = {}
    for domain in domains(PAIRS):
        file = parts / file_stem(domain) / "negatives.npy"
        ledger = file.with_name("ledger.json")
        if kept(ledger, [file]) is None:
            _write(file, _mine(domain, store, retriever, params))
            keep(ledger, [file], {})
        negatives[domain] = _open(domain, file)
    with atomic_dir(SHARDS / name) as folder:
        written = rewrite_shards(shards, negatives, folder)
        changes = {"shards": written, "models": {**shards.manifest.models, "miner": miner}}
        manifest = shards.manifest.model_copy(update=changes)
        manifest.write(folder)
        write_card(folder, manifest)
    shutil.rmtree(parts, ignore_errors=True)
    pairs, total = (sum(each) for each in zip(*((len(own), own.total) for own in negatives.values()), strict=True))
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
    blocks = chain([[]], blocks_of(scan_texts(PAIRS, domain, "id", "train")))
    ids = spilled_rows(np.array(block, "S32") for block in blocks)
    return Mined(ids, _documents(domain), np.load(file))


def _documents(domain: str) -> pa.LargeStringArray:
    return spilled_texts(batch["document"] for batch in scan_pairs(PAIRS, domain, "train", ["document"]))


def _write(file: Path, rows: NDArray[np.int32]) -> None:
    with atomic_file(file) as temporary, temporary.open("wb") as handle:
        np.save(handle, rows)
