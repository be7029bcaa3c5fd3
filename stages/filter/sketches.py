"""What is compared of each text to find its duplicates: its normal form, the form's key and its MinHash sketch."""

import math
import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.core.fingerprint import TEXT_KEY_BYTES, text_keys
from batchwright.core.normal_form import normal_form
from stages.filter.shingles import cuts, shingles

BANDS, HASHES = 8, 8
"""The size of a text's MinHash sketch. A band's key combines as many of the band's hashes as ``MISSED`` allows."""
MISSED = 1e-3
"""Accepted share of pairs right at the threshold that are missed because they share no band."""
KEY = np.dtype(f"V{TEXT_KEY_BYTES}")
"""The key of a text's normal form."""
SKETCH = np.dtype([("bands", np.uint64, (BANDS,)), ("hashes", np.uint8, (BANDS * HASHES,))])
"""The keys of a text's bands, and the low bytes of its minimum hashes."""
_NUMBER = re.compile(r"\d(?<!\w\d)\d*+(?!\w)")  # \b\d+\b, but begins with what can be searched for fast


def normal_forms(texts: Sequence[str]) -> tuple[pa.LargeStringArray, NDArray[np.void]]:
    """Return the normal forms of texts and their keys, ``(n,)`` each."""
    forms = [normal_form(text) for text in texts]
    return pa.array(forms, pa.large_string()), text_keys(forms)


def sketch(threshold: float, forms: Sequence[str]) -> NDArray[np.void]:
    """Return a ``SKETCH`` of each of some normal forms, ``(n,)``.

    Texts with a Jaccard similarity of ``threshold`` share a band, but for the share ``MISSED``.
    """
    share = 1 - MISSED ** (1 / BANDS)
    width = min(max(1, math.floor(math.log(share) / math.log(threshold))), HASHES)
    found = np.empty(len(forms), SKETCH)
    for block in cuts(np.array([len(form) for form in forms])):
        found["bands"][block], found["hashes"][block] = _min_hashes(forms[block], width)
    return found


def _min_hashes(texts: Sequence[str], width: int) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return keys of bands ``(n, BANDS)``, each of ``width`` hashes, and the hashes' low bytes ``(n, all)``."""
    generator = np.random.default_rng(0)
    salts = generator.integers(1 << 32, size=(BANDS, HASHES), dtype=np.uint32)
    odds = generator.integers(1 << 31, size=(BANDS, HASHES), dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    bands = np.tile(_numbers(texts)[:, None], BANDS)
    bytes_of = np.empty((len(texts), BANDS * HASHES), np.uint8)
    hashes, starts = shingles(texts)
    for band, number in np.ndindex(BANDS, HASHES):
        least = np.minimum.reduceat((hashes ^ salts[band, number]) * odds[band, number], starts[:-1])
        bytes_of[:, band * HASHES + number] = least & np.uint32(0xFF)
        if number < width:
            bands[:, band] = bands[:, band] * np.uint64(0x9E3779B97F4A7C15) + least
    return bands, bytes_of


def _numbers(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return a key of the numbers in each text: changing type 1 to type 2, or 2018 to 2019, is not a small edit."""
    listed = (" ".join(sorted(_NUMBER.findall(text))) for text in texts)
    keys: NDArray[np.uint64] = text_keys(listed).view(np.uint64)[::2].copy()
    return keys
