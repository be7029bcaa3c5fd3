"""The sizes to measure: those of a GPU, and small ones that show on a CPU that everything runs."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A BERT: ``inner`` is the width of its feed-forward layers."""

    layers: int
    width: int
    heads: int
    inner: int

    def operations(self, length: int) -> int:
        """Multiplications and additions of the matrix products of a forward pass over a text of ``length`` tokens."""
        products = 4 * self.width**2 + 2 * self.width * self.inner + 2 * length * self.width
        return 2 * length * self.layers * products


@dataclass(frozen=True, kw_only=True)
class Form:
    """What is measured at which size.

    ``matrix`` is the side of the square matrices. ``base`` is timed at ``sizes``, the tokens of a text and the pairs of
    a batch, the shortest texts first, with ``chunk_tokens`` tokens going through it at once, and CDE with so many
    ``context`` documents. ``mini`` trains for ``steps`` batches of ``pairs`` texts of at most ``cut`` tokens. XTR
    scores queries and documents of ``token_lengths`` in batches from ``least`` to ``most``; a query's token retrieves
    ``k``. ``ways`` are parameters of training that may make it faster.
    """

    matrix: int
    base: Shape
    sizes: tuple[tuple[int, int], ...]
    chunk_tokens: int
    context: int
    repeats: int
    mini: Shape
    steps: int
    pairs: int
    cut: int
    token_lengths: tuple[int, int]
    k: int
    least: int
    most: int
    ways: tuple[tuple[str, str | bool], ...]


FULL = Form(
    matrix=8192,
    base=Shape(layers=12, width=768, heads=12, inner=3072),
    sizes=((128, 1024), (512, 256)),
    chunk_tokens=2**15,
    context=512,
    repeats=3,
    mini=Shape(layers=6, width=384, heads=12, inner=1536),
    steps=10,
    pairs=512,
    cut=64,
    token_lengths=(32, 128),
    k=1024,
    least=256,
    most=4096,
    ways=(("compile", True), ("mini_batch_size", "auto"), ("attention", "flash")),
)
SMALL = Form(
    matrix=64,
    base=Shape(layers=2, width=32, heads=2, inner=64),
    sizes=((8, 8), (12, 16)),
    chunk_tokens=48,
    context=4,
    repeats=1,
    mini=Shape(layers=1, width=32, heads=2, inner=64),
    steps=3,
    pairs=8,
    cut=8,
    token_lengths=(4, 6),
    k=8,
    least=8,
    most=16,
    ways=(("mini_batch_size", "auto"), ("attention", "flash")),
)
