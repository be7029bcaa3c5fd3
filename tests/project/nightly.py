"""A project with a git remote and a DVC remote, to be retrained; its pipeline takes no time."""

import json
import os
import shutil
import subprocess
import sys
from copy import copy
from pathlib import Path
from typing import Any

import torch
import yaml
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

from batchwright.retrievers import ModelInfo
from tests.helpers import REPO, project_environment

STAGE = """
import csv, json, pathlib, shutil, sys
from batchwright.formats.query_scores import write_query_scores
from stages.scoring.collection import held_out
from stages.scoring.collection import HeldOutParams
from tests.helpers import write_rows

QUALITY = {"good": 1.0, "bad": 0.1}
pathlib.Path("results/pack").mkdir(exist_ok=True)
quality, by_domain = "good", {}
for file in sorted(pathlib.Path("raw/pairs").glob("*.csv")):
    for query, document, split in csv.reader(file.open()):
        if query == "break" and sys.argv[1] == "all":
            raise SystemExit("the stage broke")
        quality = query if query in QUALITY else quality
        by_domain.setdefault(file.stem, []).append((query, document, split))
if sys.argv[1] == "pack":
    for domain, rows in by_domain.items():
        write_rows(domain, rows)
    doubtful = {domain: sum(query.startswith("odd") for query, _, _ in rows) for domain, rows in by_domain.items()}
    of_domain = {domain: {"pairs": len(rows), "doubtful": doubtful[domain]} for domain, rows in by_domain.items()}
    packed = {"domains": dict.fromkeys(by_domain, {"masked_share": 0.0, "hardness": 0.1})}
    files = {"ingest": {"sources": {}}, "filter": of_domain, "pack/contextual": packed}
    for name, values in files.items():
        pathlib.Path(f"results/{name}.json").write_text(json.dumps(values))
    raise SystemExit
shutil.copytree("made", "models/m")
queries = held_out(pathlib.Path("data/pairs"), HeldOutParams(queries=100, documents=100)).queries
def write(name, **systems):
    write_query_scores(pathlib.Path(f"data/scores/{name}.parquet"), [
        {"collection": "held_out", "system": system, "seed": 1, "domain": query.domain, "query": query.id,
         **dict.fromkeys(("ndcg@10", "mrr@10", "recall@100"), score)}
        for system, score in systems.items() for query in queries
    ])
write("runs/m", m=QUALITY[quality])
write("baselines", **{"BM25": 0.5, "minilm, before training": 0.0})
"""
PIPELINE = {
    "stages": {
        "pack": {
            "cmd": "python stage.py pack",
            "deps": ["raw/pairs"],
            "outs": ["data/pairs"],
            "metrics": [{f"results/{name}.json": {"cache": False}} for name in ("ingest", "filter", "pack/contextual")],
        },
        "all": {
            "cmd": "python stage.py all",
            "deps": ["raw/pairs", "data/pairs"],
            "outs": ["data/scores", "models/m"],
        },
    }
}
PARAMS = {
    "base": {"seed": 1},
    "runs": {"m": {"variant": "biencoder", "batches": "contextual", "start": "models/start/minilm"}},
    "evaluate": {"held_out": {"queries": 100, "documents": 100}, "beir": []},
    "retrain": {"floor": 0.2},
}
WORDS = [f"w{number}" for number in range(40)]


class Nightly:
    """A project below ``folder``, published once, in ``folder/project``; files of pairs lie in ``folder``, too.

    Programs in the project's folder ``bin`` go before those in ``programs``, which go before all others.
    """

    def __init__(self, folder: Path, programs: Path) -> None:
        self.home, self.folder, self.programs = folder, folder / "project", programs
        for name in ("storage", "project/raw/pairs", "project/results"):
            (folder / name).mkdir(parents=True)
        self.run(
            "git init --quiet --bare --initial-branch main ../origin.git; "
            "git init --quiet --initial-branch main; dvc init --quiet"
        )
        self.run(
            "git config user.name me; git config user.email me@here; dvc remote add --quiet --default s ../storage"
        )
        (self.folder / "dvc.yaml").write_text(yaml.safe_dump(PIPELINE))
        (self.folder / "params.yaml").write_text(yaml.safe_dump(PARAMS))
        (self.folder / "stage.py").write_text(STAGE)
        (self.folder / ".gitignore").write_text("/data/\n/models/\n.scratch/\n/bin/\n")
        (self.folder / ".dvcignore").write_text("bin\n.scratch\n")
        save_model(self.folder / "made")
        self.write("birds")
        self.run(
            "git add .; git commit --quiet -m start; "
            "git remote add origin ../origin.git; git push --quiet -u origin main"
        )

    def copied(self, folder: Path) -> "Nightly":
        """Copy the project, with remotes of its own, below ``folder``."""
        subprocess.run(["cp", "-a", f"{self.home}/.", folder], check=True)
        found = copy(self)
        found.home, found.folder = folder, folder / "project"
        return found

    @property
    def environment(self) -> dict[str, str]:
        """That of its commands."""
        paths = ["bin", str(self.programs), str(Path(sys.executable).parent), os.environ["PATH"]]
        return {**project_environment(), "PATH": os.pathsep.join(paths), "PYTHONPATH": str(REPO)}

    def before(self, program: str, command: str, action: str) -> None:
        """Let ``program`` run a line of shell first when it is asked for ``command``."""
        file = self.folder / "bin" / program
        file.parent.mkdir()
        real = shutil.which(program, path=self.environment["PATH"].partition(os.pathsep)[2])
        file.write_text(f'#!/bin/sh\n[ "$1" = {command} ] && {action}\nexec {real} "$@"\n')
        file.chmod(0o755)

    def run(self, command: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Run a line of shell in the project."""
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def retrain(self, outcome: str) -> str:
        """Retrain, check how that ends, and return what is told."""
        done = self.run("python -m project retrain", check=False)
        codes = {"promoted": 0, "failed": 1, "nothing new": 3, "rejected": 4}
        assert done.returncode == codes[outcome], done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        self.said, told = done.stdout, self.message()
        assert (told["outcome"], told["exit_code"]) == (outcome, codes[outcome])
        assert told["text"].startswith(f"{outcome}: ")
        return str(told["text"])

    def message(self) -> dict[str, Any]:
        """What the last run told, or the present one tells."""
        told: dict[str, Any] = json.loads((self.folder / ".scratch/retrain/message.json").read_text())
        return told

    def write(self, domain: str, *extra: str, pairs: int = 30) -> Path:
        """Write pairs of a domain; ``extra`` are queries that tell the pipeline something."""
        lines = [
            f"{word} of {domain},{word} in {domain},{'test' if n % 3 else 'train'}" for n, word in enumerate(WORDS)
        ]
        file = self.folder / "raw/pairs" / f"{domain}.csv"
        if file.exists():
            file.unlink()  # it may be DVC's, and read-only
        file.write_text("\n".join([*lines[:pairs], *(f"{query},x,train" for query in extra)]) + "\n")
        return file

    def refs(self) -> dict[str, str]:
        """The remote's branches and tags, and the commits that they point to."""
        lines = self.run("git ls-remote origin").stdout.splitlines()
        return {name.rpartition("/")[2]: commit for commit, name in map(str.split, lines)}


def save_model(folder: Path) -> None:
    """A retriever that finds every document: each word of a pair has a direction of its own."""
    vocabulary = {word: number for number, word in enumerate(["[UNK]", *WORDS, "birds", "fish"])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[UNK]")
    embedding = StaticEmbedding(fast, embedding_dim=len(vocabulary))
    embedding.embedding.weight.data = torch.eye(len(vocabulary))
    SentenceTransformer(modules=[embedding], device="cpu").save(str(folder), create_model_card=False)
    ModelInfo(variant="biencoder", max_length=16).write(folder)
