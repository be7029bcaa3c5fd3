"""git and DVC, run as a person would run them."""

import os
import signal
import subprocess
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path

from batchwright.core.errors import InputError

_LAST_LINES = 5


def git(*arguments: str) -> str:
    """Run git and return what it printed.

    Raises:
        InputError: it failed; the message has what it said.
    """
    done = _started("git", *arguments, stderr=subprocess.PIPE)
    out, said = done.communicate()
    if done.returncode:
        raise InputError(f"git {arguments[0]} failed: {' '.join(said.split())}")
    return out.rstrip("\n")


def dvc(*arguments: str) -> None:
    """Run DVC, and show what it prints while it does.

    Raises:
        InputError: it failed; the message has the last lines that it printed.
    """
    last: deque[str] = deque(maxlen=_LAST_LINES)
    process = _started("dvc", *arguments, stderr=subprocess.STDOUT)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last.extend([line.strip()] if line.strip() else [])
        code = process.wait()
    finally:
        _end(process)
    if code:
        raise InputError(f"dvc {arguments[0]} failed: " + " | ".join(last))


def _started(*command: str, stderr: int) -> "subprocess.Popen[str]":
    """Start a program in a process group of its own, so that its stages end with it."""
    environment = {**os.environ, "PATH": _path(), "GIT_TERMINAL_PROMPT": "0"}
    try:
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True, process_group=0
        )
    except FileNotFoundError:
        raise InputError(f"{command[0]} is not installed; retraining needs git, and pip install dvc") from None


def _path() -> str:
    """Return the search path, with this environment's programs: those of cron lack them."""
    own, paths = str(Path(sys.executable).parent), os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(paths if own in paths else [own, *paths])


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()
