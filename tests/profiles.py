"""Profiles, as ``dvc exp run -S profiles=NAME`` composes them."""

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from dvc.repo import Repo
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from tests.helpers import REPO

NAMES = sorted(file.stem for file in (REPO / "profiles").glob("*.yaml"))
"""``current`` is ``params.yaml``."""


@cache
def written(name: str, *changes: str) -> str:
    """The ``params.yaml`` that DVC writes, with the ``changes`` of further ``-S``."""
    with initialize_config_dir(str(REPO), version_base=None):
        return OmegaConf.to_yaml(compose(".dvc/hydra", [f"profiles={name}", *changes]), resolve=True)


def composed(name: str, *changes: str) -> dict[str, Any]:
    """``written``, as values."""
    values: dict[str, Any] = yaml.safe_load(written(name, *changes))
    return values


def stages(folder: Path, params: str) -> set[str]:
    """The names of all stages that DVC sees in ``folder``, their repository; it raises if they do not fit together."""
    shutil.copy(REPO / "dvc.yaml", folder)
    (folder / "params.yaml").write_text(params, encoding="utf-8")
    with Repo(str(folder)) if (folder / ".dvc").exists() else Repo.init(str(folder), no_scm=True) as repo:
        return {stage.name for stage in repo.index.graph}
