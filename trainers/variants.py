"""The variants by name: the packages in this folder."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from formats.errors import InputError
from formats.hints import hint
from trainers.job import TrainJob
from trainers.params import VariantParams


class Variant(Protocol):
    """What a variant's package provides."""

    Params: type[VariantParams]
    """The group ``train.<variant>``."""

    def train(self, job: TrainJob) -> None:
        """Train in this process, one rank of several perhaps; rank 0 publishes ``job.model`` and ``job.curve``."""

    def retrieve(
        self, model: Path, queries: Sequence[str], documents: Sequence[str], k: int, max_length: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Best ``min(k, len(documents))`` documents of each query: indices and scores, ``(Q, k)`` each.

        Texts come with their prefix and are cut after ``max_length`` tokens; equal scores are ordered by index.
        """


def load_variant(name: str) -> Variant:
    """The package of a variant.

    Raises:
        InputError: there is no such variant.
    """
    known = sorted(file.parent.name for file in Path(__file__).parent.glob("*/__init__.py"))
    if name not in known:
        raise InputError(f"unknown variant '{name}'{hint(name, known)}")
    return cast(Variant, importlib.import_module(f"trainers.{name}"))
