"""What is checked in all of ``params.yaml`` before any stage runs: a typo in ``runs`` need not wait for training."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from batchwright.core.errors import InputError
from batchwright.core.names import check_names
from batchwright.core.params import PARAMS_FILE, read_params
from stages.params.keys import Schema, of_keys, of_runs
from stages.params.references import of_references, of_sizes, of_tokens

SCHEMA = Path(__file__).with_name("schema.json")
"""The JSON schema of ``params.yaml``, which ``python -m docs.parameters`` writes; editors read it, too."""


def main() -> str:
    """Check all of ``params.yaml`` that DVC puts into stages, and what ``check_params`` does."""
    check_params(PARAMS_FILE)
    if PARAMS_FILE.exists():
        _refuse(_of_groups(read_params(PARAMS_FILE), json.loads(SCHEMA.read_bytes())), PARAMS_FILE)
    return "names, keys, values and references in params.yaml are fine"


def check_params(file: Path) -> None:
    """Check the names that DVC puts into commands and paths, all keys and values, and what groups say of each other.

    Which values fit each other is checked by the stage that reads them, which also reports a missing group. Without a
    file, nothing is checked.

    Raises:
        InputError: a name cannot be one, or is taken; a key is unknown or missing; a value is refused; a group refers
            to what nothing makes, or needs more of it; or the file is not YAML.
    """
    if not file.exists():
        return
    params, schema = read_params(file), json.loads(SCHEMA.read_bytes())
    check_names(params, file)
    groups = {name: entries for name, entries in params.items() if isinstance(entries, dict)}
    _refuse(of_keys(params, schema), file)
    _refuse(of_runs(groups, schema), file)
    _refuse([*of_references(groups), *of_tokens(params.get("tokens"), groups)], file)
    _refuse(of_sizes(groups, schema), file)


def _refuse(problems: Iterable[str], file: Path) -> None:
    if lines := [f"{file}: {problem}" for problem in problems]:
        raise InputError("\n".join(lines))


def _of_groups(params: Mapping[str, Any], schema: Schema) -> Iterator[str]:
    """Yield which groups are missing or empty: DVC reads them all, and would stop with words of its own."""
    for name in schema["required"]:
        if params.get(name) is None:
            none = {"array": f"; write '{name}: []'", "object": f"; write '{name}: {{}}'"}
            remedy = none.get(schema["properties"][name].get("type"), "")  # no type: a group that needs keys
            yield f"group '{name}' is {'empty' if name in params else 'missing'}{remedy}"
    evaluate = params.get("evaluate")
    if isinstance(evaluate, dict) and "dev" not in evaluate:
        yield "parameter 'evaluate.dev' is missing; write 'dev: null' if nothing is measured on dev queries"
