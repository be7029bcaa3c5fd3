"""Seconds of each data stage for many small domains, or for one domain more.

``python -m benchmarks.domains [--domains 2000] [--pairs 150] [--characters 700]`` runs the stages on so many domains,
whose vectors are given, and prints the seconds, and the seconds of processor, of each stage and of all.

``python -m benchmarks.domains --one-more [--domains 15] [--pairs 6000]`` runs them with TF-IDF vectors, and again after
one more domain has come. It prints both times by stage, and what the last domain takes of the whole: of what all would
take, had they come at once.

Each stage runs as a user runs it, in a process of its own; ``BEAM_OPTIONS`` spreads the domains over several.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from batchwright.core.command import new_parser
from benchmarks.planted_pairs import plant_pairs
from benchmarks.scale import PARAMS, STAGES, run_stage

INGEST = {
    "sources": [{"kind": "parquet", "path": "raw/pairs/*.parquet", "domain_column": "domain"}],
    "held_out": 0,
}
TFIDF = {"models": {"given": {"kind": "tfidf"}}}


def main() -> None:
    """Make a project of many domains, run its stages and print what they took."""
    parser = new_parser("benchmarks.domains", str(__doc__), "python -m benchmarks.domains --domains 200")
    parser.add_argument("--one-more", action="store_true", help="run the stages again with one more domain")
    parser.add_argument("--domains", type=int, help="by default 2000, and 15 with --one-more")
    parser.add_argument("--pairs", type=int, help="pairs of each domain; by default 150, and 6000 with --one-more")
    parser.add_argument("--characters", type=int, default=700)
    arguments = parser.parse_args()
    domains, pairs = (15, 6_000) if arguments.one_more else (2_000, 150)
    measure = _measure_one_more if arguments.one_more else _measure_many
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), arguments.domains or domains, arguments.pairs or pairs, arguments.characters)


def _measure_many(folder: Path, domains: int, pairs: int, characters: int) -> None:
    plant_project(folder, domains, pairs, characters)
    times = []
    for stage in STAGES:
        seconds, processor, mib = run_stage(folder, stage)
        times.append((seconds, processor))
        print(f"{stage}: {seconds:.1f} s, {processor:.1f} s of processor, {mib:,} MiB", flush=True)
    seconds, processor = (sum(each) for each in zip(*times, strict=True))
    print(f"{domains:,} domains of {pairs} pairs: {seconds:.0f} s, {processor:.0f} s of processor")


def plant_project(folder: Path, domains: int, pairs: int, characters: int) -> None:
    """Write the parameters, the pairs of all domains in one file, and their vectors."""
    for name in ("pairs", "vectors"):
        (folder / "raw" / name).mkdir(parents=True)
    plant_pairs(folder / "raw/pairs", domains * pairs, characters)
    (folder / "raw/pairs/vectors.parquet").rename(folder / "raw/vectors/vectors.parquet")
    file = folder / "raw/pairs/pairs.parquet"
    names = pa.array([f"d{number}" for number in range(domains)]).take(pa.array(np.repeat(np.arange(domains), pairs)))
    pq.write_table(pq.read_table(file).append_column("domain", names), file)
    (folder / "params.yaml").write_text(yaml.safe_dump(PARAMS | {"ingest": INGEST}), encoding="utf-8")


def _measure_one_more(folder: Path, domains: int, pairs: int, characters: int) -> None:
    (folder / "raw/pairs").mkdir(parents=True)
    params = PARAMS | {"ingest": INGEST, "embed": TFIDF}
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    stages = (*STAGES, "pack random")
    for number in range(domains):
        _add_domain(folder, number, pairs, characters)
    before = [run_stage(folder, stage)[0] for stage in stages]
    _add_domain(folder, domains, pairs, characters)
    after = [run_stage(folder, stage)[0] for stage in stages]
    for stage, first, second in zip(stages, before, after, strict=True):
        print(f"{stage}: {first:.1f} s for {domains} domains, {second:.1f} s with one more")
    whole = sum(before) * (domains + 1) / domains
    print(f"one more: {sum(after):.1f} of {whole:.1f} s, {sum(after) / whole:.0%}")


def _add_domain(folder: Path, number: int, pairs: int, characters: int) -> None:
    """Write the pairs of one more domain, into a file of its own."""
    with tempfile.TemporaryDirectory() as planted:
        plant_pairs(Path(planted), pairs, characters, seed=number)
        table = pq.read_table(Path(planted) / "pairs.parquet")
    names = pa.array([f"d{number}"] * len(table))
    pq.write_table(table.append_column("domain", names), folder / f"raw/pairs/d{number}.parquet")


if __name__ == "__main__":
    main()
