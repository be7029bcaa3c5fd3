"""Run stages on disks that are too small, then on one that is not: ``python -m tests.faults.disks ROUNDS [WORKERS]``.

A stage must say that the disk is full, leave what was published before, and make the same bytes once there is room.
"""

import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.faults.victim import EVERY, OFTEN, STAGES, content, copy_code, environment, new_project, reproduce

SCRIPT = """
mount -t tmpfs -o size={size}k tmpfs {disk} && cp -r {project}/. {disk} && cd {disk} || exit 99
rm -rf .scratch && {stage} > {out}/said 2>&1; echo $? > {out}/code
cp -r data models results {out}
mount -o remount,size=8g {disk} || exit 99
rm -rf {output}; {stage} > {out}/again-said 2>&1; echo $? > {out}/again-code
mkdir {out}/again && cp -r data models results {out}/again
"""


def possible() -> bool:
    """Whether small disks can be mounted here, which takes user namespaces."""
    return not subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode


def main(rounds: int, workers: int = 0, stages: Sequence[str] = tuple(STAGES)) -> Counter[str]:
    """Return how often a stage was run, how often the disk was full, and the number of faults by kind."""
    rng, counts = random.Random(0), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        code = copy_code(Path(name, "code"), *OFTEN)
        project = new_project(Path(name, "project"), code, pairs=600, params=EVERY)
        settings = environment(code, workers)
        reproduce(project, settings)
        for _ in range(rounds):
            for stage in stages:
                out = Path(tempfile.mkdtemp(dir=name))
                run_once(project, stage, rng.random() ** 4, out, settings, counts)
                shutil.rmtree(out)
    return counts


def run_once(
    project: Path, stage: str, share: float, out: Path, settings: dict[str, str], counts: Counter[str]
) -> None:
    """Run a stage with room for a ``share`` of what it will write, and again with more."""
    disk = out / "disk"
    disk.mkdir()
    used = 4 * sum(-(-file.stat().st_size // 4096) for file in project.rglob("*") if file.is_file())
    written = sum(file.stat().st_size for file in (project / "data").rglob("*") if file.is_file()) // 1024
    command = shlex.join([sys.executable, "-m", "project", "stage", *stage.split()])
    script = SCRIPT.format(
        size=used + int(share * written), disk=disk, project=project, out=out, stage=command, output=STAGES[stage]
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], env=settings, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{stage}: {done.stderr}")
    counts["runs"] += 1
    said = (out / "said").read_text(errors="replace")
    full = (out / "code").read_text().strip() != "0"
    counts["full"] += full
    refusal = rf"^{stage.split()[0]}: error: (the disk is full|.* GB of disk in )"
    if full and ("Traceback" in said or not re.search(refusal, said, re.MULTILINE)):
        fault(counts, "not said", f"{stage}, {share:.2f}: {said[-3000:]}")
    wanted = content(project)
    if lost := differing(content(out), wanted):
        fault(counts, "lost", f"{stage}, {share:.2f}: {lost}")
    if (out / "again-code").read_text().strip() != "0":
        fault(counts, "does not go on", f"{stage}: {(out / 'again-said').read_text()[-3000:]}")
    elif differ := differing(content(out / "again"), wanted):
        fault(counts, "differ", f"{stage}, {share:.2f}: {differ}")


def differing(found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    """Files that were lost, changed or left, but for curves, which grow while a model is trained."""
    curves = ("results/train/", "results/pretrain/")
    files = sorted(file for file in found.keys() | wanted.keys() if not file.startswith(curves))
    return [file for file in files if found.get(file) != wanted.get(file)]


def fault(counts: Counter[str], kind: str, what: str) -> None:
    """Count and print a fault."""
    counts[kind] += 1
    print(f"{kind}: {what}", flush=True)


if __name__ == "__main__":
    print(dict(main(*map(int, sys.argv[1:]))))
