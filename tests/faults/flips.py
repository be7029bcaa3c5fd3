"""Flip a bit in every file of every artifact, and look who notices: ``python -m tests.faults.flips``."""

import os
import random
import re
import tempfile
from collections import Counter
from contextlib import chdir
from pathlib import Path

from batchwright.core.errors import InputError
from batchwright.verify import locked_outputs, verify
from tests.faults.victim import EVERY, copy_code, environment, new_project, reproduce


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


def main() -> Counter[str]:
    """Return how many files, of how many kinds, had a bit flipped, and how often that was not noticed."""
    with tempfile.TemporaryDirectory() as name:
        code = copy_code(Path(name, "code"))
        project = new_project(Path(name, "project"), code, pairs=600, params=EVERY)
        reproduce(project, environment(code))
        with chdir(project):
            return flip_all()


def flip_all() -> Counter[str]:
    """Flip a bit in each file of this project."""
    rng, counts, kinds = random.Random(0), Counter[str](), set[str]()
    verify()
    for artifact in locked_outputs():
        for file in sorted(artifact.rglob("*")) if artifact.is_dir() else [artifact]:
            if not file.is_file() or not file.stat().st_size:
                continue
            before = file.stat()
            content = flip(file, rng)
            try:
                verify(artifact)
                counts["not noticed"] += 1
                print(f"not noticed: {file}")
            except InputError:
                pass
            write(file, content, before)
            counts["files"] += 1
            kinds.add(kind(artifact, file))
    verify()
    counts["kinds"] = len(kinds)
    return counts


if __name__ == "__main__":
    print(dict(main()))
