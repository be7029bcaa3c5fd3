"""The command ``python -m stages.index NAME``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.index.stage",
        "Indexes the documents of all pairs with an XTR run: data/indexes/NAME.",
        "python -m stages.index xtr",
        name="an entry of index in params.yaml",
    )
