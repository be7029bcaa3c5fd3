"""``python -m docs.parameters``: writes the schema of ``params.yaml`` for editors, and the reference for readers."""

import json
from pathlib import Path

from batchwright.core.command import command
from docs.schema_tables import tables

SCHEMA = Path(__file__).with_name("params.schema.json")
REFERENCE = Path(__file__).with_name("parameters.md")
_INTRODUCTION = """\
# Parameters

`python -m docs.parameters` writes this page from the models that check `params.yaml`, and `docs/params.schema.json`,
with which editors complete and check it. Parameters that are not listed here are refused.

"""


def contents() -> dict[Path, str]:
    """The content of each generated file."""
    from docs.schema import schema  # all stages and trainers, and PyTorch with them

    found = schema()
    return {SCHEMA: json.dumps(found, indent=2) + "\n", REFERENCE: _INTRODUCTION + tables(found)}


def main() -> str:
    """Write the schema and the reference."""
    for file, text in contents().items():
        file.write_text(text, encoding="utf-8")
    return f"{SCHEMA.name} and {REFERENCE.name} written"


if __name__ == "__main__":
    command(
        "docs.parameters",
        "Writes the parameter reference, docs/parameters.md, and the JSON schema of params.yaml.",
        "python -m docs.parameters",
    )
