"""Small corpora, planted vectors and stages run as a user runs them."""

import hashlib
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from numpy.typing import NDArray

from batchwright.core.atomic import CHECKSUMS
from batchwright.core.fingerprint import content_id, text_keys
from batchwright.formats.metadata import write_metadata
from batchwright.formats.models import Prefixes
from batchwright.formats.pairs import PAIRS_SCHEMA, domains, file_stem, pairs_file, read_pairs, write_table
from batchwright.formats.shards import ShardSet, extended, format_with, write_shard
from batchwright.formats.vectors import write_domain_vectors, write_encoder

REPO = Path(__file__).parents[1]
WORDS = [f"w{number}" for number in range(60)]
TOPICS = [f"topic{number}" for number in range(12)]
WIDTH = 16

PARAMS: dict[str, Any] = {
    "base": {"seed": 1},
    "embed": {"models": {"planted": {"name": "./no-model", "max_length": 16, "batch_size": 8}}},
    "cluster": {"vectors": "planted", "cluster_size": 16, "iterations": 10},
    "filter": {"vectors": "planted", "margin": 0.125},
    "pack": {"batch_size": 8, "epochs": 2, "cluster_share": [1.0], "batches_per_shard": 3},
    "evaluate": {"held_out": {"queries": 10, "documents": 50}},
}


def write_params(folder: Path, changes: Mapping[str, Any] | None = None) -> None:
    """Write ``params.yaml``: the groups above with dotted keys of ``changes`` set."""
    values = yaml.safe_load(yaml.safe_dump(PARAMS))
    for key, value in (changes or {}).items():
        *groups, last = key.split(".")
        place = values
        for group in groups:
            place = place[group]
        place[last] = value
    (folder / "params.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")


def topic_pairs(pairs: int, topics: int = 4, seed: int = 0) -> list[tuple[str, str]]:
    """Unique queries and documents; the first word of both is the pair's topic."""
    generator = np.random.default_rng(seed)
    made = []
    for number in range(pairs):
        topic = TOPICS[generator.integers(topics)]
        words = generator.choice(WORDS, size=(2, int(generator.integers(2, 9)))).tolist()
        made.append(
            (f"{topic} q{seed} {number} {' '.join(words[0])}", f"{topic} d{seed} {number} {' '.join(words[1])}")
        )
    return made


def write_pairs(domain: str, pairs: list[tuple[str, str]], split: str = "train") -> None:
    """Write ``data/pairs`` of one domain in the working directory, all of one split."""
    write_rows(domain, [(query, document, split) for query, document in pairs])


def write_rows(domain: str, rows: list[tuple[str, str, str]]) -> None:
    """Write ``data/pairs`` of one domain from queries, documents and splits."""
    records = [
        {
            "id": content_id(domain, query, document),
            "query": query,
            "document": document,
            "domain": domain,
            "split": split,
            "negatives": [],
        }
        for query, document, split in rows
    ]
    table = pa.Table.from_pylist(sorted(records, key=lambda record: str(record["id"])), schema=PAIRS_SCHEMA)
    write_table(pairs_file(Path("data/pairs"), domain), table, PAIRS_SCHEMA)


def planted_vectors(texts: list[str]) -> NDArray[np.float16]:
    """Vectors ``(N, 16)`` near that of each text's first word, of length about 1.

    All are multiples of 1/16: sums of their products are exact in float32, in whatever order.
    """
    made = [
        _direction(text.split()[0].casefold()) + 0.7 * _direction(" ".join(text.casefold().split())) for text in texts
    ]
    vectors = np.stack(made) / np.linalg.norm(made, axis=1, keepdims=True)
    rounded: NDArray[np.float16] = (np.round(vectors * 16) / 16).astype(np.float16)
    return rounded


def plant_vectors(
    name: str = "planted", vectors_of: Callable[[list[str]], NDArray[np.float16]] = planted_vectors
) -> None:
    """Write ``data/vectors/NAME`` for all of ``data/pairs``."""
    folder = Path("data/vectors") / name
    for domain in domains(Path("data/pairs")):
        table = read_pairs(Path("data/pairs"), domain)
        texts = sorted({*table["query"].to_pylist(), *table["document"].to_pylist()})
        write_domain_vectors(folder / file_stem(domain), text_keys(texts), vectors_of(texts))
    write_encoder(folder, {"weights": f"weights of {name}", "prefixes": Prefixes().model_dump()})


def annotate_shards(folder: Path) -> None:
    """Give each row of shards a weight and, but for the first of a batch, metadata: its place and its id."""
    shards, written, first = ShardSet.open(folder), [], 0
    (folder / CHECKSUMS).unlink(missing_ok=True)
    for shard in shards.manifest.shards:
        batches = []
        for batch in map(shards.batch, range(first, first + shard.batches)):
            said = [
                {"place": place, "their id": name} if place else {}
                for place, name in enumerate(batch["id"].to_pylist())
            ]
            weights = pa.array(np.arange(1, len(batch) + 1) / 2, pa.float32())
            batches.append(extended(batch, weight=weights, metadata=pa.array(map(write_metadata, said))))
        written.append(write_shard(folder / shard.name, batches))
        first += shard.batches
    changes = {"format": format_with(batches[0].schema.names), "shards": written}
    shards.manifest.model_copy(update=changes).write(folder)


def tree(folder: Path) -> dict[str, bytes]:
    """All files below a folder with their bytes, but for checksums, which follow from the others."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.name != CHECKSUMS]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def run_python(
    *arguments: str, cwd: Path, programs: Path | None = None, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run Python, or that of the folder ``programs``, in ``cwd`` with this project importable, and wait."""
    return subprocess.run(
        [programs / "python" if programs else sys.executable, *arguments],
        cwd=cwd,
        env=project_environment(**environment),
        capture_output=True,
        text=True,
        check=False,
    )


def start_python(*arguments: str, cwd: Path, **environment: str) -> "subprocess.Popen[bytes]":
    """Start Python as ``run_python`` does, in the background and unheard."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=cwd, env=project_environment(**environment), stdout=quiet, stderr=quiet
    )


def start_slowed(
    stage: str, *arguments: str, after: str, seconds: float, cwd: Path, large: int | None = None, **environment: str
) -> "subprocess.Popen[bytes]":
    """Start a stage that sleeps after every call of the function ``after``, so that there is time to kill it.

    Domains of at least ``large`` pairs are done in parts.
    """
    module, name = after.rsplit(".", 1)
    script = f"""
import runpy, sys, time
import {module} as module
from batchwright.by_domain import domains
domains.LARGE = {large} or domains.LARGE
real = module.{name}
def slow(*given):
    found = real(*given)
    time.sleep({seconds})
    return found
module.{name} = slow
sys.argv = {["stages", stage, *arguments]}
runpy.run_module("stages", run_name="__main__")
"""
    return start_python("-c", script, cwd=cwd, **environment)


def wait_for(reached: Callable[[], bool], otherwise: str, seconds: float = 60) -> None:
    """Wait until something is reached; fail if that takes too long."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)


def run_stage(
    stage: str, *arguments: str, cwd: Path, programs: Path | None = None, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run ``python -m stages STAGE`` in ``cwd``, and wait."""
    return run_python("-m", "stages", stage, *arguments, cwd=cwd, programs=programs, **environment)


def run_stages(*lines: str, cwd: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run stages, named with their arguments: each in a fork of one new process, which imports torch for them all."""
    script = """
import os, sys
from batchwright.core.command import keep_quiet
keep_quiet()
import sentence_transformers
from stages.__main__ import STAGES
for line in sys.argv[1:]:
    name, *values = line.split()
    if not (process := os.fork()):
        STAGES[name](*values)
        os._exit(0)
    if os.waitpid(process, 0)[1]:
        sys.exit(f"{line} failed")
"""
    return run_python("-c", script, *lines, cwd=cwd, **environment)


def run_on_full_disk(
    stage: str, *arguments: str, cwd: Path, pages: int, outside: Path, **environment: str
) -> tuple["subprocess.CompletedProcess[str]", list[str]]:
    """Run a stage in a copy of ``cwd`` on a disk with room for ``pages`` of 4096 bytes more.

    Returns:
        How it ended, and the files left. ``outside`` is a folder for what the copy needs.
    """
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs user namespaces, which are not allowed here")
    used = sum(-(-file.stat().st_size // 4096) for file in cwd.rglob("*") if file.is_file())
    disk, listing = outside / "disk", outside / "listing"
    disk.mkdir()
    command = shlex.join([sys.executable, "-m", "stages", stage, *arguments])
    script = f"""
        mount -t tmpfs -o size={(used + pages) * 4}k tmpfs {disk} && cp -r {cwd}/. {disk} && cd {disk} || exit 99
        {command}; status=$?; find . -type f ! -name {CHECKSUMS} -printf '%P\\n' > {listing}; exit $status
    """
    ended = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        env=project_environment(**environment),
        capture_output=True,
        text=True,
        check=False,
    )
    return ended, listing.read_text().splitlines()


def project_environment(**changes: str) -> dict[str, str]:
    """This process's environment with the project on the path."""
    return {**os.environ, "PYTHONPATH": str(REPO), **changes}


def _direction(seed: str) -> NDArray[np.float64]:
    digest = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "big")
    vector: NDArray[np.float64] = np.random.default_rng(digest).normal(size=WIDTH)
    return vector / np.linalg.norm(vector)


def install_another(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make version 99 of a library seem to be installed, in the working directory."""
    info = Path("libraries", f"{library.replace('-', '_')}-99.dist-info").resolve()
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {library}\nVersion: 99\n")
    monkeypatch.syspath_prepend(info.parent)
