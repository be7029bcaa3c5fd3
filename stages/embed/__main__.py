"""``python -m stages.embed``: pairs to vectors."""

from pathlib import Path

from formats.atomic import atomic_dir
from formats.pairs import file_stem
from formats.params import load_params
from pipelines.embed.kinds import KINDS
from pipelines.embed.params import EmbedParams
from stages.entry import run

PAIRS = Path("data/pairs")
OUTPUT = Path("data/vectors")


def main() -> str:
    """Write ``data/vectors``, a folder for each of ``embed.models``."""
    params = load_params("embed", EmbedParams)
    counts = []
    with atomic_dir(OUTPUT) as folder:
        for name, made in params.models.items():
            total, encoded = KINDS[made.kind](PAIRS, made, folder / file_stem(name))
            counts.append(f"{total:,} vectors of '{name}' ({encoded:,} encoded now)")
    return ", ".join(counts)


if __name__ == "__main__":
    run("embed", main)
