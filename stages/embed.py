"""Stage ``embed``: encodes the texts of all pairs with each encoder that later stages use."""

from batchwright.core.atomic import atomic_dir
from batchwright.core.params import load_params
from batchwright.core.paths import PAIRS, RAW, VECTORS, check_watched, watching
from batchwright.formats.models import check_model_watched
from pipelines.embed import embed
from pipelines.embed.params import EmbedParams, EncoderParams, FileParams


def main() -> str:
    """Write ``data/vectors``, with one folder per entry of ``embed.models``."""
    params = load_params("embed", EmbedParams)
    files = [encoder.path for encoder in params.models.values() if isinstance(encoder, FileParams)]
    check_watched(files, RAW / "vectors")
    for encoder in params.models.values():
        if isinstance(encoder, EncoderParams):
            check_model_watched(encoder.name)
    check_unchanged = watching(lambda: files)
    counts = []
    with atomic_dir(VECTORS) as folder:
        for name, encoder in params.models.items():
            total, encoded = embed(PAIRS, encoder, folder / name)
            counts.append(f"{total:,} vectors of '{name}' ({encoded:,} encoded now)")
        check_unchanged()
    return ", ".join(counts)
