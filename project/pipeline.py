"""``dvc.yaml`` of a project: that of the repository, but with installed code.

DVC cannot watch code outside of the project. So ``code.json`` has a digest of the code of each stage, which is a
parameter of the stage, and ``batchwright stage`` runs a stage only if its installed code has this digest.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

import yaml

from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from batchwright.core.fingerprint import files_fingerprint
from batchwright.core.terminal import hint
from stages.__main__ import STAGES, TOOLS

PIPELINE = "dvc.yaml"
DIGESTS = Path("code.json")
HEAD = """\
# Batchwright's: batchwright upgrade replaces it. Stages of your own belong into a folder with its own dvc.yaml.
# code.json changes with the installed code of a stage.
"""
CODE = Path(__file__).parents[1]
"""The folder of all packages: the repository, or where they are installed."""
_PACKAGES = ("batchwright", "pipelines", "stages", "trainers")
_VARIANT = "${item.variant}"
_DEP = re.compile(r" +- (?P<path>[^ \n]+)")
_STAGE = re.compile(r"  (?P<name>\w+):\n")


def root_file(name: str) -> Path:
    """Return where a file or folder of the repository's root lies: there, or in this package once it is installed."""
    installed = Path(__file__).with_name("root")
    return (installed if installed.is_dir() else CODE) / name


def run_stage(name: str, arguments: list[str]) -> NoReturn:
    """Become the process of a stage.

    Raises:
        InputError: there is no such stage, or the project was made for other code.
    """
    if name in STAGES:
        _check_digest(name)
    elif name not in TOOLS:
        raise InputError(f"unknown stage '{name}'{hint(name, STAGES)}")
    os.execv(sys.executable, [sys.executable, "-m", "stages", name, *arguments])


def project_pipeline(repository: str) -> str:
    """Return the project's ``dvc.yaml``, given that of the repository.

    Code is no longer a dependency, its digest is a parameter, and ``batchwright stage`` runs the stages.
    """
    stages, models = repository.split("stages:\n", 1)[1], re.compile(r"(?ms)^artifacts:\n.*")
    blocks = re.split(r"(?m)^(?=  \w+:\n)", models.sub("", stages))
    return HEAD + "stages:\n" + "".join(map(_project_stage, blocks)).rstrip() + "\n"


def _project_stage(block: str) -> str:
    """Rewrite one stage, and what follows the last one, which has no dependencies."""
    stage = _STAGE.match(block)
    key = f"{stage['name']}.{_VARIANT}" if stage and _VARIANT in block else stage and stage["name"]
    lines, in_deps = [], False
    for line in block.splitlines(keepends=True):
        dep = _DEP.match(line)
        in_deps = line.strip() == "deps:" or (in_deps and dep is not None)
        if in_deps and dep and _is_code(dep["path"]):
            continue
        lines.append(line.replace("python -m stages", "batchwright stage"))
        if line.strip() == "params:":
            lines.append(line.replace("params:", f'  - {DIGESTS}: ["{key}"]'))
    return "".join(lines)


def code_digests() -> dict[str, Any]:
    """Return the digest of each stage's code: one for each variant, if variants have code of their own."""
    return {name: _digest(deps) for name, deps in _stage_deps().items()}


def looped_groups() -> dict[str, str]:
    """Return the groups of parameters whose entries are stages, each with what it is if it has none."""
    stages = yaml.safe_load(root_file(PIPELINE).read_text(encoding="utf-8"))["stages"].values()
    mappings = [stage["foreach"] for stage in stages if "foreach" in stage]
    lists = [values for stage in stages for values in stage.get("matrix", {}).values() if isinstance(values, str)]
    return {name.strip("${}"): empty for names, empty in ((mappings, "{}"), (lists, "[]")) for name in names}


def _check_digest(stage: str) -> None:
    """Refuse other code than the project was made for; outside of a project, there is nothing to check."""
    if DIGESTS.exists() and read_json(DIGESTS, made_by="").get(stage) != _digest(_stage_deps()[stage]):
        raise InputError(
            "the installed Batchwright is not the one that this project was made for; run: batchwright upgrade"
        )


def _stage_deps() -> dict[str, list[str]]:
    """The dependencies of each stage in the repository's ``dvc.yaml``."""
    stages = yaml.safe_load(root_file(PIPELINE).read_text(encoding="utf-8"))["stages"]
    return {name: stage.get("do", stage)["deps"] for name, stage in stages.items()}


def _digest(deps: list[str]) -> Any:
    code = [dep for dep in deps if _is_code(dep)]
    if not any(_VARIANT in dep for dep in code):
        return files_fingerprint([CODE / dep for dep in code])
    variants = sorted(file.parent.name for file in (CODE / "trainers").glob("*/card.md"))
    return {variant: files_fingerprint([CODE / dep.replace(_VARIANT, variant) for dep in code]) for variant in variants}


def _is_code(dep: str) -> bool:
    return Path(dep).parts[0] in _PACKAGES
