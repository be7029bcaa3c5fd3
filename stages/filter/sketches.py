"""What is compared of each text to find its duplicates: its normal form, the form's key and its MinHash sketch."""

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.core.fingerprint import TEXT_KEY_BYTES, text_keys
from batchwright.core.normal_form import normal_forms
from batchwright.core.spill import blocks_of
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
_ASCII_NUMBER = re.compile(rb"0(?<!\w0)0*+(?!\w)")  # faster still, if all digits are 0
_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")


def forms_and_keys(texts: Iterable[str]) -> tuple[pa.LargeStringArray, NDArray[np.void]]:
    """Return the normal forms of texts and their keys, ``(n,)`` each."""
    found, keys = list[pa.Array](), list[NDArray[np.void]]()
    for block in blocks_of(texts):
        pieces = cuts(np.array([len(text) for text in block]))
        forms = [form for piece in pieces for form in normal_forms(block[piece])]
        found.append(pa.array(forms, pa.large_string()))
        keys.append(text_keys(forms))
    return pa.concat_arrays([pa.array([], pa.large_string()), *found]), np.concatenate([np.empty(0, KEY), *keys])


def sketch(threshold: float, given: pa.LargeStringArray) -> NDArray[np.void]:
    """Return a ``SKETCH`` of each of the ``given`` normal forms, ``(n,)``.

    Texts with a Jaccard similarity of ``threshold`` share a band, but for the share ``MISSED``.
    """
    share = 1 - MISSED ** (1 / BANDS)
    width = min(max(1, math.floor(math.log(share) / math.log(threshold))), HASHES)
    forms = given.to_pylist()
    found = np.empty(len(forms), SKETCH)
    for block in cuts(np.array([len(form) for form in forms])):
        found["bands"][block], found["hashes"][block] = _min_hashes(forms[block], width)
    return found


def _min_hashes(texts: Sequence[str], width: int) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return keys of bands ``(n, BANDS)``, each of ``width`` hashes, and the hashes' low bytes ``(n, all)``."""
    generator = np.random.default_rng(0)
    salts = generator.integers(1 << 32, size=BANDS * HASHES, dtype=np.uint32)
    odds = generator.integers(1 << 31, size=BANDS * HASHES, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    hashes, starts = shingles(texts)
    mixed, least = np.empty_like(hashes), np.empty((BANDS * HASHES, len(texts)), np.uint32)
    for number, (salt, odd) in enumerate(zip(salts, odds, strict=True)):
        np.multiply(np.bitwise_xor(hashes, salt, out=mixed), odd, out=mixed)
        np.minimum.reduceat(mixed, starts[:-1], out=least[number])
    bands = np.tile(_numbers(texts)[:, None], BANDS)
    for of_bands in least.reshape(BANDS, HASHES, -1).transpose(1, 2, 0)[:width]:
        bands = bands * np.uint64(0x9E3779B97F4A7C15) + of_bands
    return bands, (least & np.uint32(0xFF)).astype(np.uint8).T


def _numbers(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return a key of the numbers in each text: changing type 1 to type 2, or 2018 to 2019, is not a small edit."""
    keys: NDArray[np.uint64] = text_keys(map(numbers_in, texts)).view(np.uint64)[::2].copy()
    return keys


def numbers_in(text: str) -> str:
    """Return the numbers that stand alone in a text, sorted as strings."""
    if not text.isascii():
        return " ".join(sorted(_NUMBER.findall(text)))
    letters = text.encode("ascii")
    found = (letters[slice(*number.span())] for number in _ASCII_NUMBER.finditer(letters.translate(_TO_ZERO)))
    return b" ".join(sorted(found)).decode("ascii")
