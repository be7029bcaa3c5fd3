"""Memory that a training frees is kept for its next step."""

import ctypes
from pathlib import Path

import pytest

from tests.helpers import run_python

STEPS = """
import resource, torch
from trainers.common.passes import keep_freed_memory
keep_freed_memory()
counts = []
for step in range(12):  # the heap takes some to settle
    gradients = [torch.ones(4 << 20) for _ in range(2)]
    del gradients
    counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(counts[-1] - counts[6])
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_gradients_get_the_pages_of_the_step_before(tmp_path: Path) -> None:
    done = run_python("-c", STEPS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1000, "a gradient of 16 MiB has 4,096 pages"
