"""Who may import whom, also by names in strings: arrows run down, and the library stands below everything."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dag.closure import ROOT

MAY_IMPORT = {
    "batchwright": {"batchwright"},
    "pipelines": {"batchwright", "pipelines"},
    "trainers": {"batchwright", "trainers"},
    "stages": {"batchwright", "stages", "pipelines", "trainers"},
    "project": {"batchwright", "pipelines", "stages", "project"},
}
"""What people install. Experiments (quality), benchmarks (cost) and docs stand above it; see ``NEVER``."""
NEVER = {
    "benchmarks": {"experiments", "docs", "tests"},
    "experiments": {"benchmarks", "docs", "tests"},
    "docs": {"benchmarks", "tests"},
}
ABOVE = tuple(NEVER)
FIRST_PARTY = {*MAY_IMPORT, *ABOVE, "tests"}
_MODULE = re.compile(r"^python -m (\w[\w.]*)")
_FUNCTION = re.compile(r"^([a-z_]\w*(?:\.\w+)+):\w+$")
"""What tables of commands name: ``module:function``."""
IMPORTERS = {"import_module", "__import__", "run_module", "run_path"}
LOADS_BY_NAME = {"batchwright/core/command.py"}
"""Files that import a module whose name they are given."""
SHARED_BY_STAGES = {"negatives", "scoring"}


def _files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield the modules that code imports, by name or by a string, or runs in another process (``python -m``).

    Of a string with placeholders the text before the first one counts; "?" is a name that only running the code tells.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _name(node.func) in IMPORTERS:
            yield _text(node.args[0]) if node.args else "?"
        elif isinstance(node, ast.List | ast.Tuple):
            for option, module in zip(node.elts, node.elts[1:], strict=False):
                if _text(option) == "-m" and _text(module) != "?":
                    yield _text(module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _MODULE.findall(node.value)
            yield from _FUNCTION.findall(node.value)


def edits_search_path(tree: ast.AST) -> bool:
    """Whether code changes ``sys.path``."""
    for node in ast.walk(tree):
        changed: list[ast.AST] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            changed = [node.func.value]
        elif isinstance(node, ast.Assign):
            changed = [part for target in node.targets for part in ast.walk(target)]
        elif isinstance(node, ast.AugAssign | ast.Delete):
            changed = list(ast.walk(node))
        if any(ast.unparse(part) == "sys.path" for part in changed if isinstance(part, ast.expr)):
            return True
    return False


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "?"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import stages.pack", ["stages.pack"]),
        ("def f():\n    from project import own", ["project", "project.own"]),
        ("importlib.import_module('project.add')", ["project.add"]),
        ("import_module(f'stages.{name}')", ["stages."]),
        ("__import__(name)", ["?"]),
        ("runpy.run_module('stages.embed')", ["stages.embed"]),
        ("run([sys.executable, '-m', 'stages', 'pack'])", ["stages"]),
        ("run('python -m stages.pack random', shell=True)", ["stages.pack"]),
        ("Command('about', ('example',), 'stages.pack.stage:main')", ["stages.pack.stage"]),
    ],
)
def test_every_way_to_import_is_seen(code: str, expected: list[str]) -> None:
    assert list(imports(ast.parse(code))) == expected


@pytest.mark.parametrize(
    "code", ["sys.path.insert(0, x)", "sys.path.append(x)", "sys.path += [x]", "sys.path[:] = y", "del sys.path[0]"]
)
def test_every_edit_of_the_search_path_is_seen(code: str) -> None:
    assert edits_search_path(ast.parse(code))
    assert not edits_search_path(ast.parse("print(sys.path)\nx = sys.path[0]"))


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_arrows_run_down(package: str) -> None:
    for file in _files(package):
        names = set(imports(ast.parse(file.read_text())))
        packages = {name.partition(".")[0] for name in names} & FIRST_PARTY
        assert packages <= MAY_IMPORT[package], file
        assert "?" not in names or str(file.relative_to(ROOT)) in LOADS_BY_NAME, file


@pytest.mark.parametrize("package", ABOVE)
def test_quality_and_cost_are_measured_apart(package: str) -> None:
    for file in _files(package):
        names = imports(ast.parse(file.read_text()))
        assert {name.partition(".")[0] for name in names} & NEVER[package] == set(), file


def test_only_the_entry_of_a_stage_starts_a_pipeline_or_a_trainer() -> None:
    for file in _files("stages"):
        packages = {name.partition(".")[0] for name in imports(ast.parse(file.read_text()))}
        if packages & {"pipelines", "trainers"}:
            assert file.name == "stage.py" or file.parent == ROOT / "stages", file


def test_a_stage_imports_no_other_but_its_parameters() -> None:
    for file in _files("stages"):
        stage = file.relative_to(ROOT / "stages").parts[0]
        if stage == "__main__.py":  # the table of all stages
            continue
        parts = [name.split(".")[1:] for name in imports(ast.parse(file.read_text())) if name.startswith("stages.")]
        foreign = [own for own in parts if own and own[0] not in {stage, *SHARED_BY_STAGES} and len(own) > 1]
        assert [own for own in foreign if own[1] != "params"] == [], file


def test_a_project_checks_parameters_takes_what_its_gate_judges_by_and_starts_stages() -> None:
    for file in _files("project"):
        stages = {name for name in imports(ast.parse(file.read_text())) if name.startswith("stages")}
        allowed = ("stages.params", "stages.scoring", *(["stages.__main__"] if file.name == "pipeline.py" else []))
        assert {name for name in stages - {"stages"} if not name.startswith(allowed)} == set(), file


@pytest.mark.parametrize("package", [*MAY_IMPORT, *ABOVE])
def test_nobody_edits_the_search_path(package: str) -> None:
    for file in _files(package):
        assert not edits_search_path(ast.parse(file.read_text())), file
        assert package in ABOVE or "PYTHONPATH" not in file.read_text(), file
