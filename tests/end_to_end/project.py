"""A copy of this project in a fresh folder, with a small corpus of its own."""

import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]

ACTIONS = ["open", "close", "copy", "rename", "delete", "list", "sort", "print", "count", "compress"]
THINGS = ["file", "folder", "archive", "table", "image", "process", "user", "log", "branch", "package", "key", "port"]


class Project:
    """Commands run in it as a user would run them."""

    def __init__(self, folder: Path, programs: Path, *parts: str) -> None:
        """Copy the whole project, or only those ``parts``; what ``programs`` holds goes before all others."""
        self.folder, self.programs = folder, programs
        listed = self._git("ls-files", "--cached", "--others", "--exclude-standard", "-z", *parts, at=ROOT)
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file() and not name.startswith("tests/"):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name)
        self._git("init", "--quiet")

    def set_params(self, **changes: Any) -> None:
        """Change parameters, given as ``group__key=value``."""
        file = self.folder / "params.yaml"
        params = yaml.safe_load(file.read_text())
        for path, value in changes.items():
            *groups, key = path.split("__")
            target = params
            for group in groups:
                target = target[group]
            target[key] = value
        file.write_text(yaml.safe_dump(params, sort_keys=False))

    def dvc(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run DVC; its output is text."""
        return self.shell(f"dvc {' '.join(arguments)}")

    def shell(self, command: str) -> "subprocess.CompletedProcess[str]":
        """Run a line of shell."""
        path = f"{self.programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1"}
        return subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment, capture_output=True, text=True)

    def artifacts(self) -> dict[str, str]:
        """SHA-256 of every file that stages wrote."""
        folders = ("data", "models", "results", "report")
        files = [file for folder in folders for file in (self.folder / folder).rglob("*") if file.is_file()]
        return {str(file.relative_to(self.folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    def json(self, name: str) -> Any:
        """Content of a JSON file."""
        return json.loads((self.folder / name).read_text())

    def _git(self, *arguments: str, at: Path | None = None) -> str:
        done = subprocess.run(["git", *arguments], cwd=at or self.folder, capture_output=True, text=True, check=True)
        return done.stdout


def write_corpus(folder: Path) -> None:
    """``shell.jsonl`` with hard negatives and ``guide.csv``: 120 pairs each."""
    folder.mkdir(parents=True, exist_ok=True)
    combined = list(product(ACTIONS, THINGS))
    with (folder / "shell.jsonl").open("w") as handle:
        for action, thing in combined:
            pair = {"ask": f"how do I {action} a {thing}?", "command": f"{action} --{thing} --now"}
            handle.write(json.dumps({**pair, "wrong": [f"undo {action} --{thing}"]}) + "\n")
        handle.write(json.dumps({"ask": "", "command": "nothing was asked"}) + "\n")
    with (folder / "guide.csv").open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["title", "body", "menu", "weight"])
        for action, thing in combined:
            body = f"To {action} the {thing}, use the {thing} menu."
            writer.writerow([f"{action} {thing}", body, thing, 2 if thing == "file" else 1])
