"""Runs: the models to train, listed under ``runs`` in ``params.yaml``."""

import itertools
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, RootModel, ValidationError

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, write_json
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
    """A folder in ``data/shards``: a packing policy, or an entry of ``mine``, ``teach`` or ``tune``."""
    start: NamedPath
    """The model to start from: ``models/start/NAME``, fetched or pre-trained, or another run's ``models/NAME``."""
    seeds: int = Field(default=1, ge=1)
    """How often to train, each time with the next seed from ``base.seed`` on: on other batches, of which ``pack.seeds``
    must make as many, and from other weights if ``start`` has random ones. Scores are means over seeds, and their
    errors count queries and seeds; ``models/NAME`` is the first seed's model."""


class Choice(Params):
    """What the stage ``tune`` chose for a run: the file ``choice.json`` in a folder of ``data/shards``.

    ``manifest`` is the fingerprint of the manifest of ``batches``.
    """

    run: Name
    batches: Name
    temperature: float
    learning_rate: float
    negatives_stand_for: StandFor
    reason: str
    manifest: str

    def write(self, folder: Path) -> None:
        """Write the file."""
        write_json(folder / _CHOICE, self.model_dump())


_CHOICE = "choice.json"


def settled(run: Run, shards: Path) -> tuple[Run, str]:
    """Return a run with what ``tune`` chose, and the reason, if its ``batches`` are a choice in the folder ``shards``.

    Raises:
        InputError: the choice is damaged.
    """
    file = shards / run.batches / _CHOICE
    if not file.exists():
        return run, ""
    try:
        choice = Choice.model_validate(read_json(file, made_by="tune"))
    except ValidationError as error:
        raise InputError(f"{file}: not a choice ({error.error_count()} errors); run the stage 'tune' again") from None
    settings = choice.model_dump(include={"batches", "temperature", "learning_rate", "negatives_stand_for"})
    return run.model_copy(update=settings), choice.reason


class Runs(RootModel[dict[Name, Run]]):
    """Group ``runs``."""


def of_seed(folder: Path, place: int) -> Path:
    """Return where shards or models of a further seed lie; ``folder`` itself is that of the first, ``place`` 1."""
    return folder if place == 1 else folder / f"seed-{place}"


def seed_folders(folder: Path) -> list[Path]:
    """Return the folders of all seeds that ``folder`` holds, in their order."""
    further = itertools.takewhile(Path.is_dir, (of_seed(folder, place) for place in itertools.count(2)))
    return [folder, *further]
