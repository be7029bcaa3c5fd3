"""What a stage of ``dvc.yaml`` really reads: the first-party files that it imports and the parameters that it loads."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("formats", "pipelines", "stages", "trainers")


def imported_files(module: str) -> set[Path]:
    """Files of ``module`` and of all first-party modules it imports, directly or not, packages included."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        for file in _files(name):
            if file not in found:
                found.add(file)
                waiting += _imports(file)
    return {file.relative_to(ROOT) for file in found}


def data_files(files: set[Path]) -> set[Path]:
    """Templates and other files beside imported modules that are not Python."""
    folders = {file.parent for file in files if file.parts[0] != "formats"}
    beside = (other for folder in folders for other in (ROOT / folder).iterdir())
    return {other.relative_to(ROOT) for other in beside if other.is_file() and other.suffix not in {".py", ".pyc"}}


def loaded_groups(files: set[Path], **known: str) -> set[str]:
    """Parameter groups named in calls of ``load_params``, with ``known`` names filled into f-strings."""
    groups: set[str] = set()
    for file in (each for each in files if each.suffix == ".py"):
        for call in ast.walk(ast.parse((ROOT / file).read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "load_params":
                text = ast.unparse(call.args[0]).removeprefix("f").strip("'\"")
                filled = known["round"] if text.startswith("rounds.") else known["variant"]
                groups.add(re.sub(r"\{.*?\}", lambda _, name=filled: name, text))
    return groups


def _files(name: str) -> list[Path]:
    """The file of a module, and the ``__init__`` of every package around it."""
    parts = name.split(".")
    candidates = [ROOT.joinpath(*parts[:depth], "__init__.py") for depth in range(1, len(parts) + 1)]
    return [file for file in [*candidates, ROOT.joinpath(*parts).with_suffix(".py")] if file.is_file()]


def _imports(file: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            around = file.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join([*around, *([node.module] if node.module else [])])
            names += [module, *(f"{module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.split(".")[0] in PACKAGES]
