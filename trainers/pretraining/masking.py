"""Masks the tokens that the encoder has to predict. Masks are redrawn each time a sequence is read."""

import numpy as np
from numpy.typing import NDArray

REPLACED = 0.8
RANDOM = 0.1


def mask_tokens(
    tokens: NDArray[np.int32],
    maskable: NDArray[np.bool_],
    share: float,
    mask: int,
    ordinary: NDArray[np.int32],
    generator: np.random.Generator,
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Mask ``share`` of each sequence's ``maskable`` tokens, as BERT does.

    Of m maskable tokens, floor(share m) or one more are chosen, share m on average. Of these, 80 % become ``mask``,
    10 % become one of the ``ordinary`` tokens ``(V',)``, and 10 % stay as they are.

    Returns:
        The tokens as the encoder reads them, and which ones were chosen, as bool; both have the shape ``(n, l)`` of
        ``tokens``.
    """
    counts = np.floor(share * maskable.sum(axis=1) + generator.random(len(tokens))).astype(np.int64)
    keys = np.where(maskable, generator.random(tokens.shape), np.inf)
    ranks = keys.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    chosen: NDArray[np.bool_] = (ranks < counts[:, None]) & maskable
    fate = generator.random(tokens.shape)
    others = generator.choice(ordinary, tokens.shape)
    read = np.where(chosen & (fate < REPLACED), np.int32(mask), tokens)
    read = np.where(chosen & (fate >= REPLACED) & (fate < REPLACED + RANDOM), others, read)
    return read.astype(np.int32), chosen
