"""Make batches of 2,000 domains with 1,024 open files at most: ``python -m tests.faults.descriptors``."""

import resource
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.planted import plant_pairs
from benchmarks.scale import PARAMS, STAGES, run_stage

LIMIT = 1024
INGEST = {
    "sources": [{"kind": "parquet", "path": "raw/pairs/pairs.parquet", "domain_column": "domain"}],
    "held_out": 0,
}


def main(domains: int = 2_000) -> Counter[str]:
    """Return how many stages were run, all of which did."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    with tempfile.TemporaryDirectory() as name:
        _plant_project(Path(name), domains, pairs=150, characters=200)
        for stage in STAGES:
            run_stage(Path(name), stage)
    return Counter(runs=len(STAGES))


def _plant_project(folder: Path, domains: int, pairs: int, characters: int) -> None:
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
    print(dict(main()))
