"""Undo the mend of each known fault, and look whether a test finds it: ``python -m tests.faults.mutants [NUMBER ...]``.

``NUMBER`` chooses among them. A test must pass as the code is, and fail with the mend undone.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.faults.mends import MUTANTS, Mutant
from tests.faults.victim import change
from tests.helpers import REPO


def main(chosen: list[int]) -> Counter[str]:
    """Print a line per mutant; return how many were undone, and how many of them were not found."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may let its background jobs ignore it
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        code = _copy(Path(name, "code"))
        sound: dict[str, bool] = {}
        for number, mutant in enumerate(MUTANTS):
            if chosen and number not in chosen:
                continue
            if mutant.test not in sound:
                sound[mutant.test] = _passes(code, mutant.test)
            found = sound[mutant.test] and not _with(code, mutant)
            counts["mends"] += 1
            if not found:
                counts["not found"] += 1
            state = "found" if found else "NOT FOUND" if sound[mutant.test] else "TEST FAILS ANYWAY"
            print(f"{number:2}  {state}  {mutant.fault}: {mutant.test}", flush=True)
    return counts


def _copy(folder: Path) -> Path:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, check=True).stdout
    folder.mkdir()
    subprocess.run(["xargs", "-0", "cp", "--parents", "-t", folder], input=listed, cwd=REPO, check=True)
    return folder


def _with(code: Path, mutant: Mutant) -> bool:
    """Whether the test passes with the mend undone."""
    file = code / mutant.file
    text = change(file, mutant.before, mutant.after)
    try:
        return _passes(code, mutant.test)
    finally:
        file.write_text(text)


def _passes(code: Path, test: str) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", f"tests/{test}"]
    settings = {**os.environ, "PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "1"}
    return not subprocess.run(command, cwd=code, env=settings, capture_output=True, check=False).returncode


if __name__ == "__main__":
    print(dict(main(list(map(int, sys.argv[1:])))))
