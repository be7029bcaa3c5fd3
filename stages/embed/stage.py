"""Encode the texts of the pairs as vectors."""

from batchwright.core.atomic import atomic_dir
from batchwright.core.params import load_params
from batchwright.core.paths import PAIRS, RAW, VECTORS, check_watched
from batchwright.formats.pairs import file_stem
from pipelines.embed.kinds import KINDS
from pipelines.embed.params import EmbedParams, FileParams


def main() -> str:
    """Write ``data/vectors``, with one folder per entry of ``embed.models``."""
    params = load_params("embed", EmbedParams)
    check_watched([made.path for made in params.models.values() if isinstance(made, FileParams)], RAW / "vectors")
    counts = []
    with atomic_dir(VECTORS) as folder:
        for name, made in params.models.items():
            total, encoded = KINDS[made.kind](PAIRS, made, folder / file_stem(name))
            counts.append(f"{total:,} vectors of '{name}' ({encoded:,} encoded now)")
    return ", ".join(counts)
