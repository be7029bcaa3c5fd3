"""``dvc.yaml`` declares what its stages really read."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from stages.__main__ import STAGES as COMMANDS
from tests.dag.closure import PACKAGES, ROOT, data_files, imported_files, loaded_groups
from trainers.variants import VARIANTS

PIPELINE = yaml.safe_load((ROOT / "dvc.yaml").read_text())
EXAMPLES = {
    "pretrain": {"seed_encoder": {}},
    "mine": {"mined-1": {"model": "models/biencoder", "count": 4, "depth": 50}},
    "teach": {"taught": {"batches": "mined-1", "model": "raw/models/reranker"}},
    "tokens": ["xtr"],
    "tune": {"best": {"run": "static"}},
}
"""Stages that the default run leaves out are checked, too."""
_GIVEN = yaml.safe_load((ROOT / "params.yaml").read_text())
PARAMS = {**_GIVEN, **{group: _GIVEN[group] or example for group, example in EXAMPLES.items()}}
PARAMS["runs"] |= {"seed_encoder": {"variant": "seed_encoder", "start": "models/start/seed_encoder"}}
MOST_LINES, MOST_LOCK_LINES = 380, 2900
MOST_CODE_DEPS, MOST_SINGLE_FILES = 92, 30
SETTINGS = {Path("pipelines/__init__.py")}
"""Files that change nothing of what a stage writes: these silence Beam."""


def _expanded() -> dict[str, dict[str, Any]]:
    """Return stages by name, with loops expanded."""
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


def _variants(name: str) -> list[str]:
    """Return the variants whose packages a stage loads by name."""
    stage, _, key = name.partition("@")
    if stage in ("train", "evaluate"):
        return [PARAMS["runs"][key]["variant"]]
    return {"baselines": VARIANTS, "mine": VARIANTS, "teach": VARIANTS, "tokens": ["xtr"], "tune": VARIANTS}.get(
        stage, []
    )


def _imported(name: str) -> set[Path]:
    stage = re.match(r"python -m stages (\w+)", STAGES[name]["cmd"])
    assert stage
    modules = ["batchwright.core.command", COMMANDS[stage[1]].function.partition(":")[0]]
    modules += [f"batchwright.retrievers.{variant}" for variant in _variants(name)]
    if name.startswith(("train@", "tune@")):
        modules += [f"trainers.{variant}" for variant in _variants(name)]
    return imported_files(*modules)


def _covered(name: str) -> set[Path]:
    """Return all first-party files that the deps of a stage name, as folders or one by one."""
    named = [ROOT / dep for dep in STAGES[name]["deps"] if Path(dep).parts[0] in PACKAGES]
    inside = (file for dep in named for file in ([dep] if dep.is_file() else dep.rglob("*")))
    return {file.relative_to(ROOT) for file in inside if file.is_file() and "__pycache__" not in file.parts}


def test_the_command_line_and_the_pipeline_have_the_same_stages():
    assert list(COMMANDS) == list(PIPELINE["stages"])
    for command in COMMANDS.values():
        module, _, name = command.function.partition(":")
        assert callable(getattr(importlib.import_module(module), name))


def test_dvc_remembers_the_runs_of_all_stages_but_compare():
    """Outputs that DVC does not cache, unless they are metrics or plots, would make it forget."""
    forgotten = {name for name, stage in STAGES.items() if any(isinstance(out, dict) for out in stage.get("outs", []))}
    assert forgotten == {"compare"}  # which takes no time


@pytest.mark.parametrize("name", STAGES)
def test_deps_cover_every_first_party_file_that_a_stage_imports(name):
    files = _imported(name)
    missing = sorted(map(str, (files | data_files(files)) - SETTINGS - _covered(name)))
    assert not missing, f"missing in deps of {name}: {missing}"


@pytest.mark.parametrize("name", STAGES)
def test_every_dep_holds_code_that_the_stage_imports(name):
    """Editing code reruns the stages that use it, and few others."""
    imported = _imported(name)
    for dep in STAGES[name]["deps"]:
        if Path(dep).parts[0] in PACKAGES:
            assert any(file == Path(dep) or Path(dep) in file.parents for file in imported), f"{name}: {dep}"


def test_deps_are_few_and_mostly_folders():
    code = [dep for stage in PIPELINE["stages"].values() for dep in stage.get("do", stage)["deps"]]
    code = [dep for dep in code if Path(dep).parts[0] in PACKAGES]
    assert len(code) <= MOST_CODE_DEPS
    assert sum(dep.endswith(".py") for dep in code) <= MOST_SINGLE_FILES


def test_stages_that_work_by_domain_depend_on_the_libraries() -> None:
    names = {name for name in STAGES if Path("batchwright/by_domain/domains.py") in _imported(name)}
    assert names == {
        "ingest",
        "embed",
        "filter",
        "cluster",
        "pack@contextual",
        "pack@random",
        "mine@mined-1",
        "teach@taught",
    }
    assert [name for name in names if "requirements.lock" not in STAGES[name]["deps"]] == []


def test_training_code_never_reruns_evaluation():
    for name in STAGES:
        if name.startswith(("baselines", "evaluate", "tokens", "mine", "teach")):
            assert not [dep for dep in STAGES[name]["deps"] if dep.startswith("trainers")], name


def test_the_pipeline_and_its_lock_stay_readable():
    assert len((ROOT / "dvc.yaml").read_text().splitlines()) <= MOST_LINES
    assert len((ROOT / "dvc.lock").read_text().splitlines()) <= MOST_LOCK_LINES


@pytest.mark.parametrize("name", STAGES)
def test_declared_params_are_exactly_those_that_a_stage_loads(name):
    stage, key = STAGES[name], name.partition("@")[2]
    run = PARAMS["tune"][key]["run"] if name.startswith("tune@") else key
    variant = PARAMS["runs"].get(run, {}).get("variant", "")
    loaded, declared = loaded_groups(_imported(name), name=key, run=run, variant=variant), set(stage.get("params", []))
    if "train" in declared:  # DVC does not know the variant of the run that is tuned
        loaded = {"train" if group.startswith("train.") else group for group in loaded}
    assert loaded == declared


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_has_a_description(name):
    assert STAGES[name]["desc"]
