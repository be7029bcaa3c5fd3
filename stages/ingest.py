"""Stage ``ingest``: turns sources of any kind into unique pairs by domain, rejects with their reasons, and counts."""

import shutil
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from batchwright.by_domain.domains import Done, Metrics, do_domains
from batchwright.by_domain.spread import Map
from batchwright.core.atomic import atomic_dir, atomic_file
from batchwright.core.errors import InputError
from batchwright.core.files import write_json
from batchwright.core.params import load_params
from batchwright.core.paths import PAIRS, RAW_PAIRS, REJECTS, RESULTS, check_watched, watching
from batchwright.core.terminal import safe, shown
from batchwright.formats.pairs import REJECTS_SCHEMA, pairs_file, write_table
from pipelines import ingest
from pipelines.beam.spread import spread
from pipelines.ingest.account import check_rejects, collect_rejected, take_account
from pipelines.ingest.domain import PAIRS_FILE, write_domain
from pipelines.ingest.heavy import Heavy, heavy_queries
from pipelines.ingest.params import IngestParams
from pipelines.ingest.pipeline import read_sources
from pipelines.ingest.read import PartRead

OUTPUT = RESULTS / "ingest.json"

Parts = Sequence[tuple[int, PartRead]]  # index of the entry in ingest.sources, and one of its parts


def main() -> str:
    """Write ``data/pairs``, ``data/rejects.parquet`` and ``results/ingest.json``."""
    params = load_params("ingest", IngestParams)
    check_watched(_files(params), RAW_PAIRS)
    check_unchanged = watching(lambda: _files(params))
    parts = read_sources(params)
    check_unchanged()
    numbers = _parts_of_domains(parts)
    domain_parts = {domain: [parts[number][1] for number in of_domain] for domain, of_domain in numbers.items()}
    heavy = heavy_queries(domain_parts, params.held_out, params.dev)
    done = _do_domains(params, domain_parts, heavy)
    summary = _publish(params, parts, numbers, done)
    check_unchanged()
    for query in heavy:
        what = f"{shown(query.query)} has {query.pairs:,} of {query.of:,} {query.split} pairs of '{query.domain}'"
        print(f"ingest: warning: {safe(what)}, too many for one query; it stays in train", file=sys.stderr)
    return summary


def _files(params: IngestParams) -> list[str]:
    return [file for source in params.sources for file in source.files()]


def _parts_of_domains(parts: Parts) -> dict[str, list[int]]:
    """Return the numbers of the parts that hold candidates of each domain."""
    numbers = defaultdict(list)
    for number, (_, part) in enumerate(parts):
        for domain in part.pieces:
            numbers[domain].append(number)
    return dict(sorted(numbers.items()))


def _do_domains(
    params: IngestParams, domain_parts: Mapping[str, Sequence[PartRead]], heavy: Sequence[Heavy]
) -> dict[str, Done]:
    hashes = sorted(query.query_hash for query in heavy)

    def work(domain: str, folder: Path, _: Map) -> Metrics:
        return write_domain(domain, domain_parts[domain], folder, params.held_out, params.dev, hashes)

    determines = {
        domain: [params.held_out, params.dev, hashes, [part.pieces[domain]["digest"] for part in of_domain]]
        for domain, of_domain in domain_parts.items()
    }
    return do_domains("ingest/domains", Path(ingest.__file__).parent, work, determines, spread)


def _publish(params: IngestParams, parts: Parts, numbers: Mapping[str, Sequence[int]], done: Mapping[str, Done]) -> str:
    rejected = collect_rejected(parts, [(done[domain].files, of_domain) for domain, of_domain in numbers.items()])
    kept = [
        (parts[number][0], count)
        for domain, of_domain in numbers.items()
        for number, count in zip(of_domain, done[domain].metrics["pairs_of"], strict=True)
    ]
    rows = [(entry, part.rows) for entry, part in parts]
    accounts = take_account(len(params.sources), rows, kept, rejected)
    labels = [source.label for source in params.sources]
    check_rejects(labels, accounts, rejected, params.max_reject_rate)
    if not done:
        raise InputError("params.yaml: no row of 'ingest.sources' is a pair; lower ingest.max_reject_rate to see why")
    counts = {domain: work.metrics["counts"] for domain, work in done.items()}
    with atomic_dir(PAIRS) as folder, atomic_file(REJECTS) as rejects, atomic_file(OUTPUT) as results:
        for domain, work in done.items():
            shutil.copyfile(work.files / PAIRS_FILE, pairs_file(folder, domain))
        write_table(rejects, rejected, REJECTS_SCHEMA)
        sources = {f"{entry} {label}": accounts[entry].as_json() for entry, label in enumerate(labels)}
        write_json(results, {"domains": counts, "sources": sources})
    train, dev, test = (sum(count[split] for count in counts.values()) for split in ("train", "dev", "test"))
    pairs = f"{train:,} train, {dev:,} dev and {test:,} test pairs"
    removed = sum(account.negatives.total() for account in accounts)
    summary = f"{pairs} in {len(counts)} domains, {len(rejected) - removed:,} rows rejected"
    return f"{summary}, {removed:,} hard negatives removed that answer their query" if removed else summary
