"""The types of all code that ships, as a test, so that it runs beside the others."""

import subprocess
import sys

from tests.helpers import REPO


def test_the_types_are_right() -> None:
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
