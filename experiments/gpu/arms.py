"""The arms by name: variant, batches and start model of each, how it is asked, and which are compared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Variant = Literal["biencoder", "cde", "seed_encoder", "xtr"]
Policy = Literal["random", "contextual"]
Reading = Literal["none", "own", "another", "random", "retrieved", "all"]
"""What scores depend on, apart from the text.

CDE reads documents of the test's ``own`` corpus, of ``another`` test's far from it in the list, ``random`` ones of all
training pairs, or ``none``. With XTR, a document counts by its ``retrieved`` tokens or by ``all`` of them.
"""
READINGS: Mapping[Variant, tuple[Reading, ...]] = {
    "biencoder": ("none",),
    "cde": ("own", "another", "random", "none"),
    "seed_encoder": ("none",),
    "xtr": ("retrieved", "all"),
}
"""Those that a variant is asked with, the one that matters most first."""
SCRATCH = "scratch"
"""The start model with random weights."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How an arm is trained; ``options`` are parameters of its variant."""

    variant: Variant
    policy: Policy = "random"
    start: str = SCRATCH
    options: Mapping[str, Any] = field(default_factory=dict)

    def readings(self, *, last: bool) -> tuple[Reading, ...]:
        """What an evaluation asks with; the ``last`` one has all."""
        return READINGS[self.variant][: None if last else 1]


PRETRAINED: Mapping[str, Mapping[str, Any]] = {
    "mlm": {"decoder": None},
    "seed": {"decoder": {"kind": "weak", "layers": 3, "window": 2}},
    "retromae": {"decoder": {"kind": "retromae"}, "mlm_probability": 0.3},
}
"""Start models that ``experiments.gpu.pretraining`` makes, with parameters of ``pretrain.NAME``."""
TABLE_1 = {
    "random-biencoder": Recipe(variant="biencoder"),
    "contextual-biencoder": Recipe(variant="biencoder", policy="contextual"),
    "random-cde": Recipe(variant="cde"),
    "contextual-cde": Recipe(variant="cde", policy="contextual"),
}
STARTS = {name: Recipe(variant="seed_encoder", start=name) for name in PRETRAINED}
TOKENS = {score: Recipe(variant="xtr", options={"score": score}) for score in ("xtr", "colbert")}
ARMS: Mapping[str, Recipe] = TABLE_1 | STARTS | TOKENS

Asked = tuple[str, Reading]
COMPARED: tuple[tuple[Asked, Asked], ...] = (
    (("contextual-biencoder", "none"), ("random-biencoder", "none")),
    (("random-cde", "own"), ("random-biencoder", "none")),
    (("contextual-cde", "own"), ("contextual-biencoder", "none")),
    (("contextual-cde", "own"), ("random-cde", "own")),
    (("contextual-cde", "own"), ("random-biencoder", "none")),
    *(((name, "own"), (name, other)) for name in ("random-cde", "contextual-cde") for other in READINGS["cde"][1:]),
    (("seed", "none"), ("mlm", "none")),
    (("retromae", "none"), ("mlm", "none")),
    (("xtr", "retrieved"), ("colbert", "all")),
    (("xtr", "retrieved"), ("colbert", "retrieved")),
    (("xtr", "all"), ("colbert", "all")),
)
"""Arm and reading, minus arm and reading."""
