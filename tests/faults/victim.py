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

CODE = ("batchwright", "pipelines", "project", "stages", "trainers", "raw", "profiles", ".dvc")
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
START = {"batches": "contextual", "start": "models/start/tiny"}
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
DECODER = {"kind": "weak", "layers": 1}
EVERY: dict[str, Any] = PARAMS | {
    "pretrain": {
        "seed": {
            "encoder": {"kind": "new", "vocab_size": 400, "config": SMALL},
            **{"decoder": DECODER, "max_length": 16, "batch_size": 8, "mini_batch_size": 8, "steps": 40},
            **{"validations": 2, "learning_rate": 1e-4, "new_learning_rate": 1e-3, "warmup_ratio": 0.1},
            **{"weight_decay": 0.01, "max_grad_norm": 1.0},
        }
    },
    "pack": {"batch_size": 16, "epochs": 4},  # enough steps for trials
    "tune": {"best": {"run": "biencoder", "share": 1.0}},
    "mine": {"mined": {"model": "models/biencoder", "count": 2, "depth": 20}},
    "teach": {"taught": {"batches": "mined", "model": "models/biencoder"}},
    "runs": {
        **PARAMS["runs"],
        "mined": {"variant": "biencoder", "batches": "mined", "start": "models/start/tiny"},
        "cde": {"variant": "cde", **START},
        "xtr": {"variant": "xtr", **START},
        "seed_encoder": {"variant": "seed_encoder", "batches": "random", "start": "models/start/seed"},
    },
    "tokens": ["xtr"],
}
"""With these, each stage does something."""
STAGES = {
    **{"ingest": "data/pairs data/corpus data/rejects.parquet", "embed": "data/vectors", "filter": "data/negatives"},
    **{"cluster": "data/clusters", "pack contextual": "data/shards/contextual", "pack random": "data/shards/random"},
    **{"fetch tiny": "models/start/tiny", "pretrain seed": "models/start/seed", "mine mined": "data/shards/mined"},
    **{"tune best": "data/shards/best", "teach taught": "data/shards/taught"},
    **{"train biencoder": "models/biencoder", "train cde": "models/cde", "train xtr": "models/xtr"},
    **{"train seed_encoder": "models/seed_encoder", "baselines": "data/scores/baselines.parquet"},
    **{"evaluate xtr": "data/scores/runs/xtr.parquet", "evaluate cde": "data/scores/runs/cde.parquet"},
    **{
        "tokens xtr": "results/tokens/xtr.tsv results/tokens/xtr-ranks.tsv results/tokens/xtr-examples.tsv",
        "compare": "results/compare.tsv",
    },
    **{"report": "report"},
}
"""The stages of such a project, and what DVC removes before it runs one."""

Change = tuple[str, str, str]
"""A file, a text that is there once, and what to write instead."""
OFTEN: list[Change] = [
    ("trainers/common/step_loop.py", "SAVE_EVERY_SECONDS = 120.0", "SAVE_EVERY_SECONDS = 0.2"),
    ("batchwright/by_domain/domains.py", "LARGE = 20_000", "LARGE = 1_000"),
    ("batchwright/formats/pairs.py", "ROWS = 16_384", "ROWS = 500"),
    ("batchwright/formats/pairs.py", "_FEW_BYTES = 1 << 20", "_FEW_BYTES = 0"),
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


def new_project(folder: Path, code: Path, pairs: int = 1500, params: dict[str, Any] = PARAMS) -> Path:
    """Make a project of ``code`` with two domains and a tiny start model."""
    command = [sys.executable, "-m", "project", "init", folder]
    subprocess.run(command, cwd=code, env=environment(code), check=True, capture_output=True)
    sources = []
    for domain in ("shop", "help"):
        rows = [f"how does {domain} thing {n} fit part {n % 37}?,part {n % 37} of {n} fits well" for n in range(pairs)]
        (folder / f"raw/pairs/{domain}.csv").write_text("query,document\n" + "\n".join(rows) + "\n")
        sources.append({"kind": "csv", "path": f"raw/pairs/{domain}.csv", "domain": domain})
    shutil.copytree(save_bert(folder.parent / "tiny"), folder / "raw/models/tiny")
    shutil.rmtree(folder.parent / "tiny")
    found = yaml.safe_load((folder / "params.yaml").read_text()) | params
    found["ingest"]["sources"] = sources
    found["train"] |= {variant: {"temperature": 0.05} for variant in ("cde", "xtr", "seed_encoder")}
    found["train"]["cde"]["context_documents"] = 8
    (folder / "params.yaml").write_text(yaml.safe_dump(found, sort_keys=False))
    return folder


def reproduce(project: Path, settings: dict[str, str]) -> None:
    """Make everything, and forget what ``dvc repro`` would go on with."""
    done = subprocess.run(["dvc", "repro"], cwd=project, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in (".scratch", ".dvc/cache"):
        shutil.rmtree(project / name)


def environment(code: Path, workers: int = 0) -> dict[str, str]:
    """The environment of commands that run ``code``, and train with so many workers."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings = {"PYTHONPATH": str(code), "BATCHWRIGHT_TRAIN_WORKERS": str(workers), "BATCHWRIGHT_TRAIN_GPUS": "0"}
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **settings}


def content(project: Path) -> dict[str, str]:
    """Hashes of all that stages wrote, but for unfinished work and the report, which tells how long it took."""
    files = [file for name in ("data", "models", "results") for file in (project / name).rglob("*") if file.is_file()]
    return {str(file.relative_to(project)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
