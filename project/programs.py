"""git and DVC as a person would run them."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from batchwright.core.command import end_with_parent
from batchwright.core.errors import InputError

_LAST_LINES, _LAST_SHOWN = 100, 5
_STAGE = re.compile(r"Running stage '(?P<name>.+)':|Updating lock file")
"""What DVC says when a stage begins, or has ended."""
_UNCHANGED = "didn't change, skipping"
_FAILED = "ERROR: failed to reproduce"
_PATIENCE = 60
"""Seconds that a program has to end after it was told to."""


def git(*arguments: str, cwd: Path | None = None) -> str:
    """Run git, in the folder ``cwd``, and return what it printed.

    Raises:
        InputError: it failed; the message has what it said.
    """
    process = _started("git", *arguments, stderr=subprocess.PIPE, cwd=cwd)
    try:
        output, errors = process.communicate()
    finally:
        _end(process)
    if process.returncode:
        raise InputError(f"git {arguments[0]} failed: {' '.join(errors.split())}")
    return output.rstrip("\n")


def dvc(
    *arguments: str, quiet: bool = False, begins: Callable[[str], None] | None = None, cwd: Path | None = None
) -> None:
    """Run DVC, and show what it prints while it does, unless ``quiet``; ``begins`` is told the name of each stage.

    DVC's own ``--quiet`` would also hide why it fails.

    Raises:
        InputError: it failed; the message has the stage, and what that or DVC said.
    """
    said: list[str] = []
    stage = ""
    process = _started("dvc", *arguments, stderr=subprocess.STDOUT, cwd=cwd, bound=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if not quiet:
                print(line, end="", flush=True)
            if running := _STAGE.match(line):
                said, stage = [], running["name"] or ""
                if begins and stage:
                    begins(f"stage {stage}")
                continue
            if line.strip() and not line.rstrip().endswith(_UNCHANGED):
                said = [*said, line.strip()][-_LAST_LINES:]
        code = process.wait()
    finally:
        _end(process)
    if code:
        where = f" in stage {stage}" if stage else ""
        raise InputError(f"dvc {arguments[0]} failed{where}: {_reason(said)}")


def _reason(said: list[str]) -> str:
    """Return of the last lines of DVC and a stage those of the stage's own error, or else the last ones."""
    errors = [place for place, line in enumerate(said) if ": error: " in line]
    own = [line for line in said[errors[-1] :] if not line.startswith(_FAILED)] if errors else said[-_LAST_SHOWN:]
    return " | ".join(own)


def _started(*command: str, stderr: int, cwd: Path | None, bound: bool = False) -> "subprocess.Popen[str]":
    """Start a program in a process group of its own, so that its stages end with it.

    A ``bound`` one also ends with this process, which is copied for that. git ends soon by itself, often sooner than
    the copy is made.
    """
    environment = {**os.environ, "PATH": _path(), "GIT_TERMINAL_PROMPT": "0"}
    try:
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            process_group=0,
            preexec_fn=end_with_parent if bound else None,
        )
    except FileNotFoundError:
        raise InputError(f"{command[0]} is not installed; install git, and DVC with pip install dvc") from None


def _path() -> str:
    """Return the search path, with this environment's programs: those of cron lack them."""
    programs, paths = str(Path(sys.executable).parent), os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(paths if programs in paths else [programs, *paths])


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
