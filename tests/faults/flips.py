"""Flip a bit in every file of every artifact, and look who notices: ``python -m tests.faults.flips PROJECT``."""

import os
import random
import re
import sys
from collections import Counter
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.integrity.locked import locked_outputs
from batchwright.integrity.verify import verify


def flip(file: Path, rng: random.Random) -> bytes:
    """Flip a bit as a failing disk does, without a trace in the file's times; return what was there."""
    before, content = file.stat(), file.read_bytes()
    spoiled = bytearray(content)
    place = rng.randrange(len(spoiled))
    spoiled[place] ^= 1 << rng.randrange(8)
    write(file, bytes(spoiled), before)
    return content


def write(file: Path, content: bytes, before: os.stat_result) -> None:
    file.chmod(0o644)
    with file.open("r+b") as handle:
        handle.write(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    file.chmod(before.st_mode)


def kind(artifact: Path, file: Path) -> str:
    """What counts as one kind of file: its place in the kind of artifact, without the names of runs and domains."""
    place = "/".join(artifact.parts[:2])
    return f"{place}: {re.sub('[0-9]+', 'N', file.name)}"


def main(project: Path) -> Counter[tuple[str, bool]]:
    """Return how often a flip in each kind of file was noticed, and how often not."""
    os.chdir(project)
    rng, counts = random.Random(0), Counter[tuple[str, bool]]()
    verify()
    for artifact in locked_outputs():
        for file in sorted(artifact.rglob("*")) if artifact.is_dir() else [artifact]:
            if not file.is_file() or not file.stat().st_size:
                continue
            before = file.stat()
            content = flip(file, rng)
            try:
                verify(artifact)
                noticed = False
                print(f"not noticed: {file}")
            except InputError:
                noticed = True
            write(file, content, before)
            counts[kind(artifact, file), noticed] += 1
    verify()
    return counts


if __name__ == "__main__":
    found = main(Path(sys.argv[1]))
    kinds = {name for name, _ in found}
    silent = sum(count for (_, noticed), count in found.items() if not noticed)
    print(f"{found.total()} files of {len(kinds)} kinds, {silent} flips not noticed")
