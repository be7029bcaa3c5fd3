"""Time and peak memory of the data stages, from Parquet to shards, and how they grow with the number of pairs.

``python -m benchmarks.scale [--pairs 100000 1000000] [--cores 1 2] [--characters 700] [--output FILE]``

Each stage runs as a user runs it, in a process of its own, on generated pairs of one domain whose vectors are given;
with ``--cores``, on each of these numbers of cores. Prints a line for each stage and size, and the bytes that a pair
more needs.
"""

import contextlib
import itertools
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import psutil
import yaml

from batchwright.core.command import new_parser
from batchwright.core.files import write_tsv
from batchwright.core.runtime import cpus
from benchmarks.planted import plant_pairs

ROOT = Path(__file__).parents[1]
STAGES = ("ingest", "embed", "filter", "cluster", "pack contextual")
PARAMS = {
    "base": {"seed": 17},
    "ingest": {"sources": [{"kind": "parquet", "path": "raw/pairs/pairs.parquet", "domain": "planted"}], "held_out": 0},
    "embed": {"models": {"given": {"kind": "file", "path": "raw/vectors/vectors.parquet"}}},
    "filter": {"vectors": "given", "likeness": "auto"},
    "cluster": {"vectors": "given", "method": "balanced", "cluster_size": 64, "iterations": 5},
    "pack": {"batch_size": 128, "epochs": 2, "cluster_share": [0, 0.5], "batches_per_shard": 64},
}
_EVERY_SECONDS = 0.2

Row = dict[str, str | int | float]


def main() -> None:
    """Run the stages on each size, and print and write what they took."""
    parser = new_parser("benchmarks.scale", str(__doc__), "python -m benchmarks.scale --pairs 10000 100000")
    parser.add_argument("--pairs", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--cores", nargs="+", type=int, default=[cpus()])
    parser.add_argument("--characters", type=int, default=700)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    rows: list[Row] = []
    for pairs, cores in itertools.product(arguments.pairs, arguments.cores):
        with tempfile.TemporaryDirectory() as folder:
            rows += run_stages(Path(folder), pairs, cores, arguments.characters)
        if arguments.output:
            write_tsv(arguments.output, rows)
    for less, more in itertools.pairwise(arguments.pairs):
        for stage in STAGES:
            first, last = (
                next(row for row in reversed(rows) if (row["pairs"], row["stage"]) == (n, stage)) for n in (less, more)
            )
            growth = (float(last["mib"]) - float(first["mib"])) * 2**20 / (more - less)
            print(f"{stage}: {growth:,.0f} bytes a pair from {less:,} to {more:,} pairs")


def run_stages(folder: Path, pairs: int, cores: int, characters: int) -> list[Row]:
    """Make a project in ``folder`` and run its stages on so many cores."""
    for name in ("pairs", "vectors"):
        (folder / "raw" / name).mkdir(parents=True)
    # In a process of its own: the peak memory of a process begins with that of the one that started it.
    planting = multiprocessing.get_context("spawn").Process(
        target=plant_pairs, args=(folder / "raw", pairs, characters)
    )
    planting.start()
    planting.join()
    for name in ("pairs", "vectors"):
        (folder / f"raw/{name}.parquet").rename(folder / f"raw/{name}/{name}.parquet")
    (folder / "params.yaml").write_text(yaml.safe_dump(PARAMS), encoding="utf-8")
    rows: list[Row] = []
    for stage in STAGES:
        seconds, processor, mib = run_stage(folder, stage, cores)
        measured = {"seconds": seconds, "processor_s": processor, "mib": mib}
        rows.append({"pairs": pairs, "cores": cores, "stage": stage, **measured})
        used = f"{seconds:.1f} s, {processor / seconds:.0%} of a core, {mib:,} MiB"
        print(f"{pairs:,} pairs, cores: {cores}, {stage}: {used}", flush=True)
    return rows


def run_stage(folder: Path, stage: str, cores: int | None = None) -> tuple[float, float, int]:
    """Run a stage on some or all cores; return its seconds, its seconds of processor and its peak memory in MiB.

    Pages of files do not count as memory: the system takes them back when it needs them.
    """
    taken = sorted(os.sched_getaffinity(0))[:cores]
    start = time.perf_counter()
    with (folder / "log").open("w+b") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "stages", *stage.split()],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
            preexec_fn=partial(os.sched_setaffinity, 0, taken),
        )
        most = 0
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            most = max(most, _memory(psutil.Process(process.pid)))
            time.sleep(_EVERY_SECONDS)
        _, status, used = ended
        seconds = time.perf_counter() - start
        if status:
            raise SystemExit(f"{stage} failed:\n{(folder / 'log').read_text(errors='replace')[-2000:]}")
    return round(seconds, 1), round(used.ru_utime + used.ru_stime, 1), most // 1024


def _memory(process: psutil.Process) -> int:
    """Return KiB of memory that a process and those it started hold now, but for pages of files.

    Of memory that several share, each counts its share.
    """
    kib = 0
    with contextlib.suppress(psutil.NoSuchProcess, OSError):  # it has ended
        for each in (process, *process.children(recursive=True)):
            lines = Path(f"/proc/{each.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
            kib += sum(int(line.split()[1]) for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    return kib


if __name__ == "__main__":
    main()
