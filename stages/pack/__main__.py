"""The command ``python -m stages.pack POLICY``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.pack.stage",
        "Packs clusters into training batches with false-negative masks: Arrow shards in data/shards/POLICY.",
        "python -m stages.pack contextual",
        policy="contextual or random",
    )
