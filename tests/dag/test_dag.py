"""``dvc.yaml`` tells the truth about what its stages read."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dag.closure import PACKAGES, ROOT, data_files, imported_files, loaded_groups

PIPELINE = yaml.safe_load((ROOT / "dvc.yaml").read_text())
PARAMS = yaml.safe_load((ROOT / "params.yaml").read_text())


def _expanded() -> dict[str, dict[str, Any]]:
    """Stages by name, loops written out."""
    stages = {}
    for name, stage in PIPELINE["stages"].items():
        if not {"matrix", "foreach"} & stage.keys():
            stages[name] = stage
        for key, values in stage.get("matrix", {}).items():
            stages |= {
                f"{name}@{value}": _filled(stage, {f"item.{key}": value})
                for value in (PARAMS[values.strip("${}")] if isinstance(values, str) else values)
            }
        if group := stage.get("foreach", "").strip("${}"):
            for key, item in PARAMS[group].items():
                own = {f"item.{field}": value for field, value in item.items()}
                stages[f"{name}@{key}"] = _filled(stage["do"], {"key": key, **own})
    return stages


def _filled(stage: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    text = yaml.safe_dump(stage)
    for place, value in values.items():
        text = text.replace(f"${{{place}}}", str(value))
    filled: dict[str, Any] = yaml.safe_load(text)
    return filled


STAGES = _expanded()
VARIANTS = sorted(file.parent.name for file in (ROOT / "trainers").glob("*/__init__.py"))


def _variant(stage: dict[str, Any]) -> str:
    """The variant's folder that a stage depends on."""
    folders = [Path(dep) for dep in stage["deps"] if Path(dep).parts[0] == "trainers" and (ROOT / dep).is_dir()]
    return folders[0].name if folders else ""


def _imported(stage: dict[str, Any], variant: str | None = None) -> set[Path]:
    module = re.search(r"python -m ([\w.]+)", stage["cmd"])
    assert module
    files = imported_files(f"{module[1]}.__main__")
    if variant := variant or _variant(stage):
        files |= imported_files(f"trainers.{variant}")
    return files | data_files({file for file in files if file.name != "__init__.py" or file.parts[0] != "trainers"})


def _own_deps(stage: dict[str, Any]) -> set[Path]:
    """Files, those of a variant's folder one by one."""
    named = {Path(dep) for dep in stage["deps"] if Path(dep).parts[0] in PACKAGES}
    inside = {
        file.relative_to(ROOT) for dep in named for file in (ROOT / dep).rglob("*") if "__pycache__" not in file.parts
    }
    return {dep for dep in named | inside if (ROOT / dep).is_file()}


@pytest.mark.parametrize("name", STAGES)
def test_deps_are_exactly_the_first_party_files_that_a_stage_imports(name):
    """What variants share is a dependency of all of them, since a loop has one list."""
    stage = STAGES[name]
    wanted, declared = _imported(stage), _own_deps(stage)
    others = VARIANTS if _variant(stage) else [None]
    may = set().union(*(_imported(stage, other) for other in others))
    may |= {file for file in declared if file.parts[:2] == ("trainers", _variant(stage))}  # a folder is one dependency
    missing = "\n".join(f"      - {file}" for file in sorted(wanted - declared))
    assert not wanted - declared, f"missing in deps of {name}:\n{missing}"
    assert not declared - may, f"deps of {name} that it does not import: {sorted(map(str, declared - may))}"


@pytest.mark.parametrize("name", STAGES)
def test_declared_params_are_exactly_those_that_a_stage_loads(name):
    stage = STAGES[name]
    loaded = loaded_groups(_imported(stage), variant=_variant(stage), round=name.partition("@")[2])
    assert loaded == set(stage.get("params", []))


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_says_what_it_does(name):
    assert STAGES[name]["desc"]


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_meet_only_through_formats(package):
    """Entry points of stages may start a pipeline or a trainer; nothing else imports sideways."""
    for file in (ROOT / package).rglob("*.py"):
        allowed = {"formats", package}
        if package == "stages" and file.name == "__main__.py":
            allowed = set(PACKAGES)
        text = file.read_text()
        found = set(re.findall(r"^\s*(?:from|import) (\w+)", text, re.MULTILINE)) & set(PACKAGES)
        assert found <= ({"formats"} if package == "formats" else allowed), file


def test_stage_folders_do_not_import_each_other():
    """An entry point may read another stage's parameters."""
    for file in (ROOT / "stages").rglob("*.py"):
        own = file.relative_to(ROOT / "stages").parts[0]
        imported = set(re.findall(r"^from stages\.(\w+(?:\.\w+)?)", file.read_text(), re.MULTILINE))
        foreign = {name for name in imported if name.split(".")[0] not in {own, "entry", "by_domain"}}
        assert not {name for name in foreign if file.name != "__main__.py" or not name.endswith(".params")}, file
