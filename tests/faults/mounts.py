"""Run every stage where data, models, results and scratch are disks of their own: ``python -m tests.faults.mounts``.

Nothing can be renamed from one to another then, as in containers. What was there before is replaced.
"""

import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.faults.disks import differing
from tests.faults.victim import EVERY, STAGES, content, copy_code, environment, new_project, reproduce

SCRIPT = """
cp -r {project} {out}/copy && cd {out}/copy || exit 99
for folder in data data/shards models models/start results .scratch; do
  mkdir {out}/here && mount -t tmpfs tmpfs {out}/here && cp -r $folder/. {out}/here || exit 99
  mount --move {out}/here $folder && rmdir {out}/here || exit 99
done
{runs}
mkdir {out}/found && cp -r data models results {out}/found
"""


def main(stages: Sequence[str] = tuple(STAGES)) -> Counter[str]:
    """Return how many stages were run, and the number of faults by kind."""
    counts = Counter[str](runs=len(stages))
    with tempfile.TemporaryDirectory() as name:
        code = copy_code(Path(name, "code"))
        project = new_project(Path(name, "project"), code, pairs=600, params=EVERY)
        settings = environment(code)
        reproduce(project, settings)
        (project / ".scratch").mkdir(exist_ok=True)
        command = shlex.join([sys.executable, "-m", "project", "stage"])
        runs = "\n".join(f"{command} {stage} || echo 'does not go on: {stage}' >> {name}/failed" for stage in stages)
        script = SCRIPT.format(project=project, out=name, runs=runs)
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", script], env=settings, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        if (failed := Path(name, "failed")).exists():
            counts["does not go on"] = len(failed.read_text().splitlines())
            print(failed.read_text(), done.stderr, flush=True)
        if differ := differing(content(Path(name, "found")), content(project)):
            counts["differ"] = len(differ)
            print(f"differ: {differ}", flush=True)
    return counts


if __name__ == "__main__":
    print(dict(main()))
