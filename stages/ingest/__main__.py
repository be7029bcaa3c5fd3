"""``python -m stages.ingest``: sources to pairs, rejects and counts."""

import shutil
from pathlib import Path

from formats.atomic import atomic_dir, atomic_file
from formats.errors import InputError
from formats.fingerprint import fingerprint
from formats.pairs import REJECTS, write_table
from formats.params import load_params
from formats.results import write_json
from formats.runtime import scratch
from pipelines.beam import saved
from pipelines.ingest.account import check_rejects, take_account
from pipelines.ingest.assemble import read_candidates, read_rejected, write_pairs
from pipelines.ingest.params import IngestParams
from pipelines.ingest.pipeline import Scratch, ingest
from stages.entry import run

PAIRS = Path("data/pairs")
REJECTED = Path("data/rejects.parquet")
RESULTS = Path("results/ingest.json")


def main() -> str:
    """Write ``data/pairs``, ``data/rejects.parquet`` and ``results/ingest.json``."""
    params = load_params("ingest", IngestParams)
    work = Scratch(scratch("ingest", fingerprint(params.model_dump())).resolve())
    shutil.rmtree(work.folder)  # what a killed run left
    try:
        ingest(params, work)
        return _publish(params, work)
    finally:
        shutil.rmtree(work.folder, ignore_errors=True)


def _publish(params: IngestParams, work: Scratch) -> str:
    domains, rejected = read_candidates(work.pairs), read_rejected(work.rejects)
    accounts = take_account(len(params.sources), saved(work.rows), domains.values(), rejected)
    labels = [source.label for source in params.sources]
    check_rejects(labels, accounts, rejected, params.max_reject_rate)
    if not domains:
        raise InputError("params.yaml: no row of 'ingest.sources' is a pair; lower ingest.max_reject_rate to see why")
    with atomic_dir(PAIRS) as folder, atomic_file(REJECTED) as rejects, atomic_file(RESULTS) as results:
        counts = {domain: write_pairs(folder, domain, pairs, params.held_out) for domain, pairs in domains.items()}
        write_table(rejects, rejected, REJECTS)
        sources = {f"{entry} {label}": accounts[entry].as_json() for entry, label in enumerate(labels)}
        write_json(results, {"domains": counts, "sources": sources})
    train, test = (sum(count[split] for count in counts.values()) for split in ("train", "test"))
    return f"{train:,} train and {test:,} test pairs in {len(counts)} domains, {len(rejected):,} rows rejected"


if __name__ == "__main__":
    run("ingest", main)
