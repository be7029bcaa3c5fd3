"""A project that makes batches and trains a tiny model, on a copy of the code in which single lines may be changed."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.helpers import REPO
from tests.tiny_models import save_bert

CODE = ("batchwright", "pipelines", "project", "stages", "trainers", "raw", "profiles", "results/tokens", ".dvc")
CODE_FILES = (".gitignore", ".dvcignore", "dvc.yaml", "requirements.lock")
PARAMS: dict[str, Any] = {
    "start_models": {"tiny": {"name": "raw/models/tiny", "max_length": 16}},
    "pretrain": {},
    "runs": {
        "biencoder": {
            "variant": "biencoder",
            "batches": "contextual",
            "start": "models/start/tiny",
            "evaluate_every": 20,
        }
    },
    "evaluate": {"held_out": {"queries": 40, "documents": 100}, "dev": {"queries": 20, "documents": 50}, "beir": []},
}

Change = tuple[str, str, str]
"""A file, a text that is there once, and what to write instead."""
OFTEN: list[Change] = [
    ("trainers/common/step_loop.py", "SAVE_EVERY_SECONDS = 120.0", "SAVE_EVERY_SECONDS = 0.2"),
    ("batchwright/by_domain/domains.py", "LARGE = 20_000", "LARGE = 1_000"),
    ("batchwright/formats/pairs/files.py", "ROWS = 16_384", "ROWS = 500"),
    ("batchwright/formats/pairs/parts.py", "_FEW_BYTES = 1 << 20", "_FEW_BYTES = 0"),
    ("pipelines/ingest/pipeline.py", "_LARGE = 10 << 20", "_LARGE = 0"),
]
"""Makes checkpoints of trainings that take seconds, reads sources in several processes, and does domains of a thousand
pairs in parts, which several processes share and read themselves."""


def copy_code(folder: Path, *changes: Change) -> Path:
    """Copy the pipeline's code to ``folder``, and change it."""
    for name in CODE:
        shutil.copytree(REPO / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "tmp", "cache"))
    for name in CODE_FILES:
        shutil.copy(REPO / name, folder / name)
    for name, before, after in changes:
        change(folder / name, before, after)
    return folder


def change(file: Path, before: str, after: str) -> str:
    """Write ``after`` instead of ``before``, which must be there once; return the text that the file had."""
    text = file.read_text()
    assert text.count(before) == 1, f"{file}: {before!r} is there {text.count(before)} times"
    file.write_text(text.replace(before, after))
    return text


def new_project(folder: Path, code: Path, pairs: int = 1500) -> Path:
    """Make a project of ``code`` with two domains and a tiny start model."""
    command = [sys.executable, "-m", "batchwright", "init", folder]
    subprocess.run(command, cwd=code, env=environment(code), check=True, capture_output=True)
    sources = []
    for domain in ("shop", "help"):
        rows = [f"how does {domain} thing {n} fit part {n % 37}?,part {n % 37} of {n} fits well" for n in range(pairs)]
        (folder / f"raw/pairs/{domain}.csv").write_text("query,document\n" + "\n".join(rows) + "\n")
        sources.append({"kind": "csv", "path": f"raw/pairs/{domain}.csv", "domain": domain})
    shutil.copytree(save_bert(folder.parent / "tiny"), folder / "raw/models/tiny")
    shutil.rmtree(folder.parent / "tiny")
    params = yaml.safe_load((folder / "params.yaml").read_text()) | PARAMS
    params["ingest"]["sources"] = sources
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    return folder


def environment(code: Path, workers: int = 0) -> dict[str, str]:
    """The environment of commands that run ``code``, and train with so many workers."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings = {"PYTHONPATH": str(code), "BATCHWRIGHT_TRAIN_WORKERS": str(workers), "BATCHWRIGHT_TRAIN_GPUS": "0"}
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **settings}


def content(project: Path) -> dict[str, str]:
    """Hashes of all that stages wrote, but for unfinished work and the report, which tells how long it took."""
    files = [file for name in ("data", "models", "results") for file in (project / name).rglob("*") if file.is_file()]
    return {str(file.relative_to(project)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
