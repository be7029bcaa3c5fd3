"""Seconds of each data stage for thousands of small domains, whose vectors are given.

``python -m benchmarks.domains [--domains 2000] [--pairs 150] [--characters 700]``

Each stage runs as a user runs it, in a process of its own; ``BEAM_OPTIONS`` spreads the domains over several. Prints
the seconds, and the seconds of processor, of each stage and of all.
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
    "sources": [{"kind": "parquet", "path": "raw/pairs/pairs.parquet", "domain_column": "domain"}],
    "held_out": 0,
}


def main() -> None:
    """Make a project of many domains, run its stages and print what they took."""
    parser = new_parser("benchmarks.domains", str(__doc__), "python -m benchmarks.domains --domains 200")
    parser.add_argument("--domains", type=int, default=2_000)
    parser.add_argument("--pairs", type=int, default=150, help="pairs of each domain")
    parser.add_argument("--characters", type=int, default=700)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        plant_project(Path(name), arguments.domains, arguments.pairs, arguments.characters)
        found = []
        for stage in STAGES:
            seconds, processor, mib = run_stage(Path(name), stage)
            found.append((seconds, processor))
            print(f"{stage}: {seconds:.1f} s, {processor:.1f} s of processor, {mib:,} MiB", flush=True)
    seconds, processor = (sum(each) for each in zip(*found, strict=True))
    print(f"{arguments.domains:,} domains of {arguments.pairs} pairs: {seconds:.0f} s, {processor:.0f} s of processor")


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


if __name__ == "__main__":
    main()
