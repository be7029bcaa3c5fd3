"""What is compared of texts to find duplicates: keys of normal forms, sets of hashed shingles, and MinHash sketches."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from batchwright.core.fingerprint import TEXT_KEY_BYTES, text_keys
from batchwright.core.normal_form import normal_forms
from batchwright.core.spill import blocks_of, text_bounds
from batchwright.core.words import letters_apart

BANDS, HASHES = 8, 8
"""The size of a text's MinHash sketch. A band's key combines as many of the band's hashes as ``MISSED`` allows."""
MISSED = 1e-3
"""Accepted share of pairs right at the threshold that are missed because they share no band."""
KEY = np.dtype(f"V{TEXT_KEY_BYTES}")
"""The key of a text's normal form."""
SKETCH = np.dtype([("bands", np.uint64, (BANDS,)), ("hashes", np.uint8, (BANDS * HASHES,))])
"""The keys of a text's bands, and the low bytes of its minimum hashes."""
WIDTH = 5
"""Characters of a shingle."""
_BITS = 30  # the rare collisions do no harm
_BLOCK_BYTES = 1 << 16  # what is made of them stays in cache
_generator = np.random.default_rng(0)
_ODD = _generator.integers(1 << 62, size=WIDTH, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_NUMBER = re.compile(r"\d(?<!\w\d)\d*+(?!\w)")  # \b\d+\b, but begins with what can be searched for fast
_ASCII_NUMBER = re.compile(rb"0(?<!\w0)0*+(?!\w)")  # faster still, if all digits are 0
_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")


def forms_and_keys(texts: Iterable[str]) -> tuple[pa.LargeStringArray, NDArray[np.void]]:
    """Return the normal forms of texts and their keys, ``(n,)`` each."""
    all_forms, keys = list[pa.Array](), list[NDArray[np.void]]()
    for block in blocks_of(texts):
        pieces = cuts(np.array([len(text) for text in block]))
        forms = [form for piece in pieces for form in normal_forms(block[piece])]
        all_forms.append(pa.array(forms, pa.large_string()))
        keys.append(text_keys(forms))
    return pa.concat_arrays([pa.array([], pa.large_string()), *all_forms]), np.concatenate([np.empty(0, KEY), *keys])


def sketch(threshold: float, normal: pa.LargeStringArray) -> NDArray[np.void]:
    """Return a ``SKETCH`` of each of the ``normal`` forms, ``(n,)``.

    Texts with a Jaccard similarity of ``threshold`` share a band, but for the share ``MISSED``.
    """
    share = 1 - MISSED ** (1 / BANDS)
    width = min(max(1, math.floor(math.log(share) / math.log(threshold))), HASHES)
    forms = normal.to_pylist()
    sketches = np.empty(len(forms), SKETCH)
    for block in cuts(np.array([len(form) for form in forms])):
        sketches["bands"][block], sketches["hashes"][block] = _min_hashes(forms[block], width)
    return sketches


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
        return " ".join(sorted(_NUMBER.findall(letters_apart(text))))
    letters = text.encode("ascii")
    numbers = (letters[slice(*number.span())] for number in _ASCII_NUMBER.finditer(letters.translate(_TO_ZERO)))
    return b" ".join(sorted(numbers)).decode("ascii")


def shingles(texts: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Hash all runs of ``WIDTH`` characters in each text.

    Each text gets a space at both ends and is padded with spaces to ``WIDTH`` characters.

    Returns:
        The hashes, text after text, and the offsets at which each text's hashes start, followed by their total number.
    """
    padded = [f" {text} ".ljust(WIDTH) for text in texts]
    ends = np.cumsum([len(text) for text in padded])
    characters = np.frombuffer("".join(padded).encode("utf-32-le"), dtype="<u4").astype(np.uint64)
    mixed = np.zeros(len(characters) - WIDTH + 1, dtype=np.uint64)
    for place, odd in enumerate(_ODD):
        mixed += characters[place : place + len(mixed)] * odd
    inside = np.ones(len(mixed), dtype=bool)
    inside[(ends[:-1, None] - np.arange(1, WIDTH)).ravel()] = False  # runs that span two texts
    hashes: NDArray[np.uint32] = (mixed[inside] >> np.uint64(64 - _BITS)).astype(np.uint32)
    starts = np.concatenate([[0], ends - (WIDTH - 1) * np.arange(1, len(texts) + 1)])
    return hashes, starts


def jaccard(texts: pa.LargeStringArray, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the Jaccard similarity of the shingles of ``texts[left[i]]`` and ``texts[right[i]]``, ``(n,)``."""
    bounds = text_bounds(texts)
    similarities = [np.empty(0)]
    for block in cuts(bounds[left + 1] - bounds[left] + bounds[right + 1] - bounds[right]):
        used, places = np.unique(np.stack([left[block], right[block]]), return_inverse=True)
        sets = _sets(texts.take(pa.array(used)).to_pylist())
        sizes = np.array([len(hashes) for hashes in sets])
        of_left, of_right = places.reshape(2, -1)
        pairs = zip(of_left.tolist(), of_right.tolist(), strict=True)
        both = np.array([_common(sets[one], sets[other]) for one, other in pairs])
        similarities.append(both / (sizes[of_left] + sizes[of_right] - both))
    return np.concatenate(similarities)


def _sets(texts: Sequence[str]) -> list[NDArray[np.uint32]]:
    """Return the different hashes of each text, in ascending order."""
    hashes, starts = shingles(texts)
    for start, end in pairwise(starts.tolist()):
        hashes[start:end].sort()
    first = np.append(True, hashes[1:] != hashes[:-1])
    first[starts[:-1]] = True
    sizes = np.add.reduceat(first, starts[:-1], dtype=np.int64)
    return np.split(hashes[first], np.cumsum(sizes)[:-1])


def _common(left: NDArray[np.uint32], right: NDArray[np.uint32]) -> int:
    """Count the numbers that two sets share."""
    both = np.concatenate([left, right])
    both.sort()
    return int(np.count_nonzero(both[1:] == both[:-1]))


def cuts(sizes: NDArray[np.int64]) -> Iterator[slice]:
    """Cut texts of so many bytes into slices of about 65,000 bytes each."""
    block = (np.cumsum(sizes) - sizes) // _BLOCK_BYTES
    edges = np.flatnonzero(np.diff(block, prepend=-1, append=-1)) if len(block) else np.empty(0, np.int64)
    return (slice(int(start), int(end)) for start, end in pairwise(edges))
