"""``python -m stages.mine ROUND``: the contextual batches, with hard negatives that a trained model finds."""

import argparse
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import formats
import stages.mine
import trainers
from formats.atomic import atomic_dir, atomic_file
from formats.fingerprint import files_fingerprint, fingerprint
from formats.models import model_hash
from formats.negatives import Negatives
from formats.pairs import domains, file_stem, read_pairs
from formats.params import load_params
from formats.results import write_json
from formats.runtime import scratch
from formats.shards import ShardSet
from formats.source import Source
from formats.vectors import VectorStore
from stages.entry import run
from stages.mine.choose import choose_hardest
from stages.mine.params import RoundParams
from stages.mine.rewrite import Mined, rewrite_shards
from trainers.params import VariantParams
from trainers.variants import Variant, load_variant

PAIRS = Path("data/pairs")
VECTORS = Path("data/vectors")
NEGATIVES = Path("data/negatives")
SHARDS = Path("data/shards")
BATCHES = "contextual"
MODELS = Path("models")
RESULTS = Path("results/mine")
CODE = [Path(str(package.__file__)).parent for package in (stages.mine, formats, trainers)]


def main() -> str:
    """Write ``data/shards/ROUND``, and how many hard negatives were found to ``results/mine/ROUND.json``."""
    parser = argparse.ArgumentParser(prog="python -m stages.mine")
    parser.add_argument("round")
    name = parser.parse_args().round
    params = load_params(f"rounds.{name}", RoundParams)
    variant = load_variant(params.variant)
    reading = load_params(f"train.{params.variant}", variant.Params)
    shards = ShardSet.open(SHARDS / BATCHES)
    miner = model_hash(MODELS / params.model)
    store = VectorStore.open(VECTORS / Source.read(NEGATIVES, made_by="filter").vectors)
    content = files_fingerprint([PAIRS, NEGATIVES, *CODE])
    parts = scratch("mine", fingerprint(params.model_dump(), reading.model_dump(), miner, store.weights, content))
    negatives: dict[str, Mined] = {}
    for domain in domains(PAIRS):
        table = read_pairs(PAIRS, domain, "train")
        file = parts / f"{file_stem(domain)}.npy"
        if not file.exists():
            _write(file, _mine(domain, table, store, params, variant, reading))
        negatives[domain] = Mined(table, np.load(file))
    with atomic_dir(SHARDS / name) as folder:
        written = rewrite_shards(shards, negatives, folder)
        changes = {"shards": written, "models": {**shards.manifest.models, "miner": miner}}
        shards.manifest.model_copy(update=changes).write(folder)
    shutil.rmtree(parts, ignore_errors=True)
    pairs, total = (sum(each) for each in zip(*((len(own), own.total) for own in negatives.values()), strict=True))
    missing = params.count * pairs - total
    write_json(RESULTS / f"{name}.json", {"pairs": pairs, "mined": total, "missing": missing})
    return f"{name}: {total:,} hard negatives for {pairs:,} pairs, mined by '{params.model}'; {missing:,} missing"


def _mine(
    domain: str, table: pa.Table, store: VectorStore, params: RoundParams, variant: Variant, reading: VariantParams
) -> NDArray[np.int32]:
    """Rows ``(N, count)`` of the documents that the model takes for best and that are no positives."""
    negatives = Negatives.read(NEGATIVES, domain, len(table))
    if not len(table):
        return np.empty((0, params.count), np.int32)
    documents = np.unique(negatives.document_class, return_index=True)[1]
    prefix = reading.prefixes.of(domain, "query"), reading.prefixes.of(domain, "document")
    queries = [prefix[0] + text for text in table["query"].to_pylist()]
    texts = [prefix[1] + text for text in table["document"].take(documents).to_pylist()]
    ranked, _ = variant.retrieve(MODELS / params.model, queries, texts, params.depth, reading.max_length)
    return choose_hardest(documents[ranked], store.of(domain).of_pairs(table), negatives, params.count)


def _write(file: Path, rows: NDArray[np.int32]) -> None:
    with atomic_file(file) as temporary, temporary.open("wb") as handle:
        np.save(handle, rows)


if __name__ == "__main__":
    run("mine", main)
