"""Stage ``embed``: encodes the texts of all pairs with each encoder that later stages use."""

from collections.abc import Iterator

import numpy as np

from batchwright.core.atomic import atomic_dir
from batchwright.core.fingerprint import text_keys
from batchwright.core.params import load_params
from batchwright.core.paths import PAIRS, RAW, VECTORS, check_watched, watching
from batchwright.core.spill import find_keys
from batchwright.core.terminal import shown, warn
from batchwright.formats.models import SIDES, check_model_watched
from batchwright.formats.pairs import domains, scan_texts
from batchwright.formats.vectors import VectorStore, blocks
from pipelines.embed import embed
from pipelines.embed.params import EmbedParams, EncoderParams, FileParams

MANY = 0.01
"""A domain is named if at least this share of its texts has the vector 0."""


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
            warn("embed", _unread(name, VectorStore.open(folder / name)))
        check_unchanged()
    return ", ".join(counts)


def _unread(name: str, store: VectorStore) -> Iterator[str]:
    """Tell of domains with many texts whose vector is 0."""
    for domain in domains(PAIRS):
        found = store.of(domain, checked=False)
        zero = np.concatenate(
            [np.empty(0, bool), *(~found.vectors[block].any(axis=1) for block in blocks(len(found.vectors)))]
        )
        count = int(np.count_nonzero(zero))
        if count and count >= MANY * len(zero):
            texts = (
                (text, store.prefixes.of(domain, side) + text)
                for side in SIDES
                for text in scan_texts(PAIRS, domain, side)
            )
            example = next(text for text, read in texts if zero[find_keys(found.words, text_keys([read]))[0]])
            what = f"'{name}' reads nothing in {count:,} of {len(zero):,} texts of '{domain}' ({count / len(zero):.0%})"
            yield (
                f"{what}, such as {shown(example)}: their vectors are 0, so that nothing is like them; if they are too "
                "many, add a model that knows their language to embed.models and name it in filter.vectors and "
                "cluster.vectors"
            )
