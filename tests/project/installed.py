"""Run the commands of an installed package."""

import os
import subprocess
import sys
from pathlib import Path


def run(*command: str, cwd: Path, installed: Path) -> "subprocess.CompletedProcess[str]":
    paths = [str(installed), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {**os.environ, "PATH": os.pathsep.join(paths)}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
