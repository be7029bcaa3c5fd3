"""Stage ``ingest``: turns sources of any kind into unique pairs by domain, rejects with their reasons, and counts.

A corpus is documents without queries, which are written as pairs with an empty query are.
"""

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from batchwright.by_domain.domains import Done, Metrics, do_domains
from batchwright.by_domain.spread import Map
from batchwright.core.atomic import atomic_dir, atomic_file
from batchwright.core.errors import InputError
from batchwright.core.files import write_json
from batchwright.core.params import load_params
from batchwright.core.paths import CORPUS, PAIRS, RAW_PAIRS, REJECTS, RESULTS, check_watched, watching
from batchwright.core.terminal import shown, warn
from batchwright.formats.pairs import REJECTS_SCHEMA, pairs_file, write_table
from pipelines import ingest
from pipelines.beam.spread import spread
from pipelines.ingest.account import check_rejects, collect_rejected, commonest, take_account
from pipelines.ingest.domain import MOVED, PAIRS_FILE, write_domain
from pipelines.ingest.groups import Groups, find_groups
from pipelines.ingest.heavy import Heavy, find_heavy
from pipelines.ingest.params import IngestParams
from pipelines.ingest.pipeline import read_sources
from pipelines.ingest.read import PartRead
from pipelines.ingest.shared import Shared, find_shared
from pipelines.ingest.sources.base import Source
from pipelines.ingest.splits import Splits, query_hashes, stated_splits

OUTPUT = RESULTS / "ingest.json"

Parts = Sequence[tuple[int, PartRead]]  # index of the source, those of the corpus last, and one of its parts
Domains = Mapping[str, tuple[Sequence[int], Done]]  # numbers of the parts that hold a domain, and what was made of them


def main() -> str:
    """Write ``data/pairs``, ``data/corpus``, ``data/rejects.parquet`` and ``results/ingest.json``."""
    params = load_params("ingest", IngestParams)
    sources = [*params.sources, *(source.as_corpus() for source in params.corpus)]
    check_watched(_files(sources), RAW_PAIRS)
    check_unchanged = watching(lambda: _files(sources))
    parts = read_sources(sources)
    check_unchanged()
    first = len(params.sources)  # of the corpus
    numbers = _parts_of_domains(parts, range(first))
    domain_parts = {domain: [parts[number][1] for number in of_domain] for domain, of_domain in numbers.items()}
    groups = find_groups(domain_parts)
    stated = stated_splits(domain_parts, groups.keys)
    splits = Splits(test=params.held_out, dev=params.dev, stated=stated, groups=groups.keys)
    heavy = find_heavy(domain_parts, splits)
    splits = replace(splits, heavy=sorted(each.key for each in heavy))
    pairs = _do_domains("ingest/domains", parts, numbers, splits)
    corpus = _do_domains("ingest/corpus", parts, _parts_of_domains(parts, range(first, len(sources))), Splits())
    summary = _publish(params, [source.label for source in sources], parts, pairs, corpus)
    check_unchanged()
    warn("ingest", map(_too_heavy, heavy))
    warn("ingest", _repeated(pairs))
    warn("ingest", map(_shared, find_shared(domain_parts)))
    warn("ingest", _missing(params, splits, groups, pairs))
    warn(
        "ingest",
        (
            f"the corpus has documents of '{domain}', but no pair is of this domain; nothing is mined from them"
            for domain in sorted(corpus.keys() - pairs.keys())
        ),
    )
    return summary


def _too_heavy(heavy: Heavy) -> str:
    name = shown(heavy.name)
    if heavy.what == "group":
        name = f"group {name}" + (f" with {heavy.others:,} that share queries with it" if heavy.others else "")
    what = f"{name} has {heavy.pairs:,} of {heavy.of:,} {heavy.split} pairs of '{heavy.domain}'"
    return f"{what}, too many for one {heavy.what}; it stays in train"


def _repeated(pairs: Domains) -> Iterator[str]:
    """Tell of texts of most pairs: documents, since ranking these first would look like a success wherever the pairs
    are, and queries, whose documents are no negatives for one another.
    """
    for domain, (_, done) in pairs.items():
        of = sum(done.metrics["counts"][split] for split in ("train", "dev", "test"))
        for side, (text, count) in done.metrics["repeated"].items():
            why = "in all splits alike" if side == "document" else "of which none is a negative for another"
            what = f"{shown(text)} is the {side} of {count:,} of {of:,} pairs of '{domain}', {why}"
            yield f"{what}; leave most of them out if it says little"


def _shared(shared: Shared) -> str:
    what = f"{shared.pairs:,} of {shared.of:,} pairs of '{shared.domain}' are pairs of '{shared.other}', too"
    return f"{what}, and count in both; if that is not meant, leave one out"


def _missing(params: IngestParams, splits: Splits, groups: Groups, pairs: Domains) -> Iterator[str]:
    """Tell of a split that has no pairs because there are few queries or groups, or none to train on."""

    def missing(split: str) -> bool:
        return not any(done.metrics["counts"][split] for _, done in pairs.values())

    for split, name, share in (("test", "held_out", params.held_out), ("dev", "dev", params.dev)):
        if share and missing(split) and (groups.number or not len(splits.stated.hashes)):
            few, cure = "few queries", ""
            if groups.number:
                few, cure = f"{groups.number:,} groups", ", or take out columns.group"
            if groups.apart < groups.number:
                few = f"{few}, and those that share queries go together, which leaves {groups.apart:,} to draw from"
            yield f"no pair is in {split}, since there are {few}; raise ingest.{name}{cure}"
    if missing("train"):
        yield "no pair is in train: columns.split puts all into others; nothing can be trained"


def _files(sources: Sequence[Source]) -> list[str]:
    return [file for source in sources for file in source.files()]


def _parts_of_domains(parts: Parts, entries: range) -> dict[str, list[int]]:
    """Return the numbers of the parts of some sources that hold candidates of each domain."""
    numbers = defaultdict(list)
    for number, (entry, part) in enumerate(parts):
        for domain in part.pieces if entry in entries else ():
            numbers[domain].append(number)
    return dict(sorted(numbers.items()))


def _do_domains(stage: str, parts: Parts, numbers: Mapping[str, Sequence[int]], splits: Splits) -> Domains:
    """Write the unique pairs of all domains."""
    read = {domain: [parts[number][1] for number in of_domain] for domain, of_domain in numbers.items()}
    own = {  # what other domains' queries have changes nothing
        domain: splits.among(query_hashes(domain, of_domain)) for domain, of_domain in read.items()
    }

    def work(domain: str, folder: Path, _: Map) -> Metrics:
        return write_domain(domain, read[domain], folder, own[domain])

    determines = {
        domain: [
            *(splits.test, splits.dev, splits.heavy, own[domain].stated.digest, own[domain].groups.digest),
            *(part.pieces[domain]["digest"] for part in of_domain),
        ]
        for domain, of_domain in read.items()
    }
    done = do_domains(stage, Path(ingest.__file__).parent, work, determines, spread)
    return {domain: (numbers[domain], of) for domain, of in done.items()}


def _publish(params: IngestParams, labels: Sequence[str], parts: Parts, pairs: Domains, corpus: Domains) -> str:
    every = [*pairs.values(), *corpus.values()]
    rejected = collect_rejected(parts, [(done.files, of_domain) for of_domain, done in every])
    kept = [
        (parts[number][0], count)
        for of_domain, done in every
        for number, count in zip(of_domain, done.metrics["pairs_of"], strict=True)
    ]
    accounts = take_account(len(labels), [(entry, part.rows) for entry, part in parts], kept, rejected)
    check_rejects(labels, accounts, rejected, params.max_reject_rate)
    if not pairs:
        raise InputError("params.yaml: no row of 'ingest.sources' is a pair; lower ingest.max_reject_rate to see why")
    counts = {domain: done.metrics["counts"] for domain, (_, done) in pairs.items()}
    documents = {domain: int(done.metrics["counts"]["train"]) for domain, (_, done) in corpus.items()}
    named = {f"{entry} {label}": accounts[entry].as_json() for entry, label in enumerate(labels)}
    first = len(params.sources)
    sources, more = (dict(list(named.items())[some]) for some in (slice(first), slice(first, None)))
    with (
        atomic_dir(PAIRS) as folder,
        atomic_dir(CORPUS) as beside,
        atomic_file(REJECTS) as rejects,
        atomic_file(OUTPUT) as results,
    ):
        for target, domains in ((folder, pairs), (beside, corpus)):
            for domain, (_, done) in domains.items():
                shutil.copyfile(done.files / PAIRS_FILE, pairs_file(target, domain))
        write_table(rejects, rejected, REJECTS_SCHEMA)
        found = {"domains": counts, "sources": sources}
        write_json(results, {**found, "corpus": {"domains": documents, "sources": more}} if more else found)
    train, dev, test = (sum(count[split] for count in counts.values()) for split in ("train", "dev", "test"))
    told = f"{train:,} train, {dev:,} dev and {test:,} test pairs in {len(counts)} domains"
    if more:
        told = f"{told}, {sum(documents.values()):,} documents in the corpus"
    removed = sum(account.negatives.total() for account in accounts)
    warn("ingest", _moved(rejected))
    reasons = sum((account.rejected for account in accounts), Counter[str]())
    summary = f"{told}, {reasons.total():,} rows rejected{f': {commonest(reasons)}' if reasons else ''}"
    return f"{summary}; {removed:,} hard negatives removed that answer their query" if removed else summary


def _moved(rejected: pa.Table) -> Iterator[str]:
    """Tell of pairs whose row says another split than their query is in."""
    moved = rejected.filter(pc.is_in(rejected["reason"], pa.array(list(MOVED.values()))))
    if len(moved):
        first = moved.slice(0, 1).to_pylist()[0]
        where = f"{first['source']}, row {first['row']}: {shown(first['text'])}"
        yield (
            f"{len(moved):,} rows go to another split than they say: all rows of a query or group go to test if one of "
            f"them says so, or else to dev; such as {where}; all are in {REJECTS}"
        )
