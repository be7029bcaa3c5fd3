"""Runs: the models to train, listed under ``runs`` in ``params.yaml``."""

import itertools
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, RootModel

from batchwright.core.names import Name, NamedPath
from batchwright.core.params import Params

Precision = Literal["float32", "tfloat32", "bfloat16"]
MiniBatchSize = Literal["auto"] | Annotated[int, Field(ge=1)]
StandFor = Literal["batch", "domain"]


class Run(Params, extra="allow"):
    """One training run; its key in ``runs`` is the NAME of ``models/NAME`` and of its results.

    What it has besides are parameters of ``train.common`` and ``train.VARIANT``, which it overrides; whoever knows the
    variant checks them.
    """

    variant: Name
    """A folder in ``trainers/``: biencoder, cde, seed_encoder or xtr."""
    batches: Name
    """A folder in ``data/shards``: a packing policy, or an entry of ``mine``."""
    start: NamedPath
    """The model to start from: ``models/start/NAME``, fetched or pre-trained, or another run's ``models/NAME``."""
    seeds: int = Field(default=1, ge=1)
    """How often to train, each time with the next seed from ``base.seed`` on: on other batches, of which ``pack.seeds``
    must make as many, and from other weights if ``start`` has random ones. Scores are means over seeds, and their
    errors count queries and seeds; ``models/NAME`` is the first seed's model."""


class Runs(RootModel[dict[Name, Run]]):
    """Group ``runs``."""


def of_seed(folder: Path, place: int) -> Path:
    """Return where shards or models of a further seed lie; ``folder`` itself is that of the first, ``place`` 1."""
    return folder if place == 1 else folder / f"seed-{place}"


def seed_folders(folder: Path) -> list[Path]:
    """Return the folders of all seeds that ``folder`` holds, in their order."""
    further = itertools.takewhile(Path.is_dir, (of_seed(folder, place) for place in itertools.count(2)))
    return [folder, *further]
