"""The description of a model that is needed to load it: ``batchwright.json`` in its folder."""

import json
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from batchwright.core.errors import InputError
from batchwright.core.files import write_json
from batchwright.core.params import Params
from batchwright.formats.models import loading
from batchwright.formats.prefixes import Prefixes

FILE = "batchwright.json"

Variant = Literal["biencoder", "cde", "seed_encoder", "xtr"]


def variant_of(folder: Path) -> Variant:
    """Infer a model's variant from the files in its folder; a SEED-Encoder counts as a biencoder.

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
    """Settings that training, evaluation and search must share; a trained model inherits them from its start model."""

    variant: Variant
    """The retriever that loads it: a folder in ``batchwright/retrievers``."""
    max_length: int = Field(ge=2)
    """Maximum number of tokens per text; longer texts are cut."""
    prefixes: Prefixes = Prefixes()
    """The prefixes put before texts."""
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
                f"model '{folder}': has no {FILE}; add the model to 'start_models' in params.yaml "
                "and run the stage 'fetch', which writes the file"
            ) from None
        except ValidationError:
            raise InputError(f"{folder / FILE}: not a valid model description; fetch or train it again") from None
