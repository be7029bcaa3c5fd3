"""What a stage of ``dvc.yaml`` really reads: the first-party files that it imports and the parameters that it loads."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("batchwright", "pipelines", "stages", "trainers")


def imported_files(*modules: str) -> set[Path]:
    """Return the files of ``modules`` and of all first-party modules that they import, directly or indirectly.

    A package's ``__init__`` that only re-exports names does not count: a name imported from it counts as imported from
    the module that defines it.
    """
    found: set[Path] = set()
    inits = [init for name in modules if (init := ROOT.joinpath(*name.split("."), "__init__.py")).is_file()]
    waiting = [*modules, *(name for init in inits for name in _imports(init))]
    while waiting:
        for file in _files(waiting.pop()):
            if file not in found:
                found.add(file)
                waiting += _imports(file)
    return {file.relative_to(ROOT) for file in found}


def data_files(files: set[Path]) -> set[Path]:
    """Return templates and other files that are not Python but are in the folders of imported modules."""
    folders = {file.parent for file in files}
    beside = (other for folder in folders for other in (ROOT / folder).iterdir())
    return {other.relative_to(ROOT) for other in beside if other.is_file() and other.suffix not in {".py", ".pyc"}}


def loaded_groups(files: set[Path], **known: str) -> set[str]:
    """Return the parameter groups named in calls of ``load_params``; ``known`` fills the placeholders of f-strings."""
    groups: set[str] = set()
    for file in (each for each in files if each.suffix == ".py"):
        for call in ast.walk(_parsed(ROOT / file)):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "load_params":
                text = ast.unparse(call.args[0]).removeprefix("f").strip("'\"")
                groups.add(re.sub(r"\{(.*?)\}", lambda place: known[place[1].split(".")[-1]], text))
    return groups


@cache
def _files(name: str) -> list[Path]:
    """Return the file of a module, and the ``__init__`` of every enclosing package that has code of its own."""
    parts = name.split(".")
    around = [ROOT.joinpath(*parts[:depth], "__init__.py") for depth in range(1, len(parts) + 1)]
    files = [file for file in around if file.is_file() and not _only_reexports(file)]
    return files + [file for file in [ROOT.joinpath(*parts).with_suffix(".py")] if file.is_file()]


@cache
def _only_reexports(file: Path) -> bool:
    """Return whether a module contains nothing but its docstring, imports and ``__all__``."""
    return all(
        isinstance(node, ast.Expr | ast.ImportFrom)
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        for node in _parsed(file).body
    )


@cache
def _imports(file: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(_parsed(file)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            around = file.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join([*around, *([node.module] if node.module else [])])
            names += [module, *(f"{module}.{alias.name}" for alias in node.names)]
            names += [defined for alias in node.names for defined in _defined(module, alias.name)]
    return [name for name in names if name.split(".")[0] in PACKAGES]


@cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def _defined(package: str, name: str) -> list[str]:
    """Return the module from which a package re-exports ``name``."""
    init = ROOT.joinpath(*package.split("."), "__init__.py")
    if not init.is_file() or not _only_reexports(init):
        return []
    imports = [node for node in _parsed(init).body if isinstance(node, ast.ImportFrom)]
    return [str(node.module) for node in imports if name in {alias.name for alias in node.names}]
