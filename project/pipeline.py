"""``dvc.yaml`` of a project: that of the repository, but with installed code."""

import re

from project.code import FILE, VARIANT, is_code

HEAD = """\
# Batchwright's: batchwright upgrade replaces it. Stages of your own belong into a folder with its own dvc.yaml.
# code.json changes with the installed code of a stage.
"""
_DEP = re.compile(r" +- (?P<path>[^ \n]+)")
_STAGE = re.compile(r"  (?P<name>\w+):\n")


def project_pipeline(repository: str) -> str:
    """Return the project's ``dvc.yaml``, given that of the repository.

    Code is no longer a dependency, its digest is a parameter, and ``batchwright stage`` runs the stages.
    """
    stages, models = repository.split("stages:\n", 1)[1], re.compile(r"(?ms)^artifacts:\n.*")
    blocks = re.split(r"(?m)^(?=  \w+:\n)", models.sub("", stages))
    return HEAD + "stages:\n" + "".join(map(_project_stage, blocks)).rstrip() + "\n"


def _project_stage(block: str) -> str:
    """Rewrite one stage, and what follows the last one, which has no dependencies."""
    found = _STAGE.match(block)
    key = f"{found['name']}.{VARIANT}" if found and VARIANT in block else found and found["name"]
    lines, in_deps = [], False
    for line in block.splitlines(keepends=True):
        dep = _DEP.match(line)
        in_deps = line.strip() == "deps:" or (in_deps and dep is not None)
        if in_deps and dep and is_code(dep["path"]):
            continue
        lines.append(line.replace("python -m stages.", "batchwright stage "))
        if line.strip() == "params:":
            lines.append(line.replace("params:", f'  - {FILE}: ["{key}"]'))
    return "".join(lines)
