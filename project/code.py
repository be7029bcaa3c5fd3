"""The code that each stage of a project depends on, as digests: it is installed, where DVC cannot watch it."""

from pathlib import Path
from typing import Any

import yaml

from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from batchwright.core.fingerprint import files_fingerprint
from batchwright.home import PACKAGE, code_root

FILE = Path("code.json")
VARIANT = "${item.variant}"
_PACKAGES = ("batchwright", "pipelines", "stages", "trainers", "experiments")


def is_code(dep: str) -> bool:
    """Whether a dependency in ``dvc.yaml`` is code."""
    return Path(dep).parts[0] in _PACKAGES


def digests() -> dict[str, Any]:
    """Return the digest of each stage's code: one for each variant, if variants have code of their own."""
    return {name: _digest(deps) for name, deps in _deps().items()}


def check_digests(stage: str) -> None:
    """Check that a project was made for the code that is installed; outside of a project, there is nothing to check.

    Raises:
        InputError: it was made for other code.
    """
    if FILE.exists() and read_json(FILE, made_by="").get(stage) != _digest(_deps()[stage]):
        raise InputError(
            "the installed Batchwright is not the one that this project was made for; run: batchwright upgrade"
        )


def _deps() -> dict[str, list[str]]:
    """The dependencies of each stage in the repository's ``dvc.yaml``."""
    stages = yaml.safe_load((code_root() / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    return {name: stage.get("do", stage)["deps"] for name, stage in stages.items()}


def _digest(deps: list[str]) -> Any:
    code = [dep for dep in deps if is_code(dep)]
    if not any(VARIANT in dep for dep in code):
        return _of(code)
    variants = sorted(file.parent.name for file in (code_root() / "trainers").glob("*/card.md"))
    return {variant: _of([dep.replace(VARIANT, variant) for dep in code]) for variant in variants}


def _of(deps: list[str]) -> str:
    places = [PACKAGE.parent if Path(dep).parts[0] == PACKAGE.name else code_root() for dep in deps]
    return files_fingerprint([place / dep for place, dep in zip(places, deps, strict=True)])
