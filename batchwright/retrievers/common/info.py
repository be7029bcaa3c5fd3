"""What to know about a model before loading it: ``batchwright.json`` in its folder."""

import json
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from batchwright.core.errors import InputError
from batchwright.core.params import Params
from batchwright.core.results import write_json
from batchwright.formats.models import loading
from batchwright.formats.prefixes import Prefixes

FILE = "batchwright.json"

Variant = Literal["biencoder", "cde", "seed_encoder", "xtr"]


def variant_of(folder: Path) -> Variant:
    """What the files of a model's folder say it is; a SEED-Encoder loads as a biencoder does.

    Raises:
        InputError: the folder's configuration is damaged.
    """
    if (folder / "contextual_encoder.json").exists():
        return "cde"
    file = folder / "config_sentence_transformers.json"
    with loading(f"model '{folder}'"):
        multi = file.exists() and json.loads(file.read_bytes()).get("model_type") == "MultiVectorEncoder"
    return "xtr" if multi else "biencoder"


class ModelInfo(Params):
    """What training, evaluation and search must agree on; a trained model inherits it from its start model."""

    variant: Variant
    """Which retriever loads it: a folder in ``batchwright/retrievers``."""
    max_length: int = Field(ge=2)
    """Tokens; longer texts are cut."""
    prefixes: Prefixes = Prefixes()
    """Put before every text."""
    origin: str | None = None
    """Where the weights came from before any training here, as named in ``start_models``."""

    def write(self, folder: Path) -> None:
        """Write ``batchwright.json`` into a model's folder."""
        write_json(folder / FILE, self.model_dump())

    @classmethod
    def read(cls, folder: Path) -> "ModelInfo":
        """Read ``batchwright.json``.

        Raises:
            InputError: the folder or the file is missing, or the file is damaged.
        """
        if not folder.is_dir():
            raise InputError(f"model '{folder}': no such folder")
        try:
            return cls.model_validate_json((folder / FILE).read_bytes())
        except FileNotFoundError:
            raise InputError(
                f"model '{folder}': has no {FILE}; name the model in 'start_models' of params.yaml "
                "and run the stage 'fetch', which writes it"
            ) from None
        except ValidationError:
            raise InputError(f"{folder / FILE}: does not describe a model; make the model again") from None
