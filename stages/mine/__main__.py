"""The command ``python -m stages.mine NAME``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.mine",
        "Adds hard negatives, found by a trained model, to the contextual batches: data/shards/NAME.",
        "python -m stages.mine mined-1",
        name="an entry of mine in params.yaml",
    )
