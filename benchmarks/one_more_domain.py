"""Seconds of each data stage for fifteen domains, and again after a sixteenth has come.

``python -m benchmarks.one_more_domain [--pairs 6000] [--characters 700]``

Each stage runs as a user runs it, in a process of its own, on generated pairs, with TF-IDF vectors. Each domain has a
file of its own. Prints both times by stage, and what the sixteenth takes of the whole: of what all sixteen would take,
which is sixteen fifteenths of the first run.
"""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from batchwright.core.command import new_parser
from benchmarks.planted_pairs import plant_pairs
from benchmarks.scale import PARAMS, run_stage

DOMAINS = 16
STAGES = ("ingest", "embed", "filter", "cluster", "pack contextual", "pack random")
OWN = {
    "ingest": {
        "sources": [{"kind": "parquet", "path": "raw/pairs/*.parquet", "domain_column": "domain"}],
        "held_out": 0,
    },
    "embed": {"models": {"given": {"kind": "tfidf"}}},
}


def main() -> None:
    """Run all stages on fifteen domains, then on sixteen, and print the times."""
    parser = new_parser("benchmarks.one_more_domain", str(__doc__), "python -m benchmarks.one_more_domain --pairs 1500")
    parser.add_argument("--pairs", type=int, default=6_000, help="pairs of each domain")
    parser.add_argument("--characters", type=int, default=700)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "raw/pairs").mkdir(parents=True)
        (folder / "params.yaml").write_text(yaml.safe_dump(PARAMS | OWN), encoding="utf-8")
        for number in range(DOMAINS - 1):
            add_domain(folder, number, arguments.pairs, arguments.characters)
        before = [run_stage(folder, stage)[0] for stage in STAGES]
        add_domain(folder, DOMAINS - 1, arguments.pairs, arguments.characters)
        after = [run_stage(folder, stage)[0] for stage in STAGES]
    for stage, first, second in zip(STAGES, before, after, strict=True):
        print(f"{stage}: {first:.1f} s for {DOMAINS - 1} domains, {second:.1f} s with one more")
    whole = sum(before) * DOMAINS / (DOMAINS - 1)
    print(f"one more: {sum(after):.1f} of {whole:.1f} s, {sum(after) / whole:.0%}")


def add_domain(folder: Path, number: int, pairs: int, characters: int) -> None:
    """Write the pairs of one more domain."""
    file = folder / f"raw/pairs/d{number}.parquet"
    with tempfile.TemporaryDirectory() as made:
        plant_pairs(Path(made), pairs, characters, seed=number)
        table = pq.read_table(Path(made) / "pairs.parquet")
    pq.write_table(table.append_column("domain", pa.array([f"d{number}"] * len(table))), file)


if __name__ == "__main__":
    main()
