"""Turn sources into pairs, rejects and counts."""

import shutil

from batchwright.core.atomic import atomic_dir, atomic_file
from batchwright.core.errors import InputError
from batchwright.core.fingerprint import fingerprint
from batchwright.core.params import load_params
from batchwright.core.paths import PAIRS, RAW_PAIRS, REJECTS, RESULTS, check_watched
from batchwright.core.results import write_json
from batchwright.core.runtime import scratch
from batchwright.core.unchanged import watching
from batchwright.formats.pairs import REJECTS_SCHEMA, write_table
from pipelines.beam import saved
from pipelines.ingest.account import check_rejects, take_account
from pipelines.ingest.assemble import read_candidates, read_rejected, write_pairs
from pipelines.ingest.params import IngestParams
from pipelines.ingest.pipeline import Scratch, ingest
from pipelines.ingest.screen import screen

OUTPUT = RESULTS / "ingest.json"


def main() -> str:
    """Write ``data/pairs``, ``data/rejects.parquet`` and ``results/ingest.json``."""
    params = load_params("ingest", IngestParams)
    check_watched(_files(params), RAW_PAIRS)
    check_unchanged = watching(lambda: _files(params))
    work = Scratch(scratch("ingest", fingerprint(params.model_dump())).resolve())
    shutil.rmtree(work.folder)  # leftovers of a killed run
    try:
        ingest(params, work)
        check_unchanged()
        summary = _publish(params, work)
        check_unchanged()
        return summary
    finally:
        shutil.rmtree(work.folder, ignore_errors=True)


def _files(params: IngestParams) -> list[str]:
    return [file for source in params.sources for file in source.files()]


def _publish(params: IngestParams, work: Scratch) -> str:
    screened = {domain: screen(pairs) for domain, pairs in read_candidates(work.pairs).items()}
    domains = {domain: pairs for domain, (pairs, _) in screened.items()}
    rejected = read_rejected(work.rejects, *(removed for _, removed in screened.values()))
    accounts = take_account(len(params.sources), saved(work.rows), domains.values(), rejected)
    labels = [source.label for source in params.sources]
    check_rejects(labels, accounts, rejected, params.max_reject_rate)
    if not domains:
        raise InputError("params.yaml: no row of 'ingest.sources' is a pair; lower ingest.max_reject_rate to see why")
    with atomic_dir(PAIRS) as folder, atomic_file(REJECTS) as rejects, atomic_file(OUTPUT) as results:
        counts = {
            domain: write_pairs(folder, domain, pairs, params.held_out, params.dev) for domain, pairs in domains.items()
        }
        write_table(rejects, rejected, REJECTS_SCHEMA)
        sources = {f"{entry} {label}": accounts[entry].as_json() for entry, label in enumerate(labels)}
        write_json(results, {"domains": counts, "sources": sources})
    train, dev, test = (sum(count[split] for count in counts.values()) for split in ("train", "dev", "test"))
    pairs = f"{train:,} train, {dev:,} dev and {test:,} test pairs"
    removed = sum(account.negatives.total() for account in accounts)
    said = f"{pairs} in {len(counts)} domains, {len(rejected) - removed:,} rows rejected"
    return f"{said}, {removed:,} hard negatives removed that answer their query" if removed else said
