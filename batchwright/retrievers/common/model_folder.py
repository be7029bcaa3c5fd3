"""A trained model's folder: its description, and the sentence-transformers model in it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from pydantic import ValidationError
from tokenizers import Tokenizer
from torch import nn
from transformers.utils import logging

from batchwright.core.errors import InputError
from batchwright.core.files import write_json
from batchwright.core.params import Params
from batchwright.formats.lengths import MaxLength, limit_length
from batchwright.formats.models import SIDES, Prefix, Prefixes, loading
from batchwright.formats.prompts import FILE, configuration

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.model import BaseModel

Variant = Literal["biencoder", "cde", "seed_encoder", "xtr"]


def variant_of(folder: Path) -> Variant:
    """Infer a model's variant from the files in its folder; a SEED-Encoder counts as a biencoder.

    Raises:
        InputError: the folder's configuration is damaged.
    """
    if (folder / "contextual_encoder.json").exists():
        return "cde"
    return "xtr" if configuration(folder).get("model_type") == "MultiVectorEncoder" else "biencoder"


def is_static(folder: Path) -> bool:
    """Whether a folder holds a sentence-transformers model that looks up a vector for each token, and no transformer.

    Raises:
        InputError: the folder's list of modules is damaged.
    """
    file = folder / "modules.json"
    with loading(f"model '{folder}'"):
        return file.exists() and json.loads(file.read_bytes())[0]["type"].endswith("StaticEmbedding")


def is_released(folder: Path) -> bool:
    """Whether a folder holds a CDE model as the paper's authors published theirs.

    Raises:
        InputError: the folder's configuration is damaged.
    """
    file = folder / "config.json"
    with loading(f"model '{folder}': {file.name}"):
        return file.exists() and "transductive_corpus_size" in json.loads(file.read_bytes())


class ModelInfo(Params):
    """Settings that training, evaluation and search must share; a trained model inherits them from its start model."""

    variant: Variant
    """The retriever that loads it: a folder in ``batchwright/retrievers``."""
    max_length: MaxLength
    """Maximum number of tokens per text, or of each side's texts; longer ones are cut."""
    prefixes: Prefixes = Prefixes()
    """The prefixes put before texts."""
    origin: str | None = None
    """Where the weights came from before any training here, as named in ``start_models``."""
    random: bool = False
    """Whether the weights are random, as nothing has trained them yet; another seed starts from others."""
    dimensions: list[int] | None = None
    """What its vectors were trained to be cut to."""

    def write(self, folder: Path) -> None:
        """Write ``batchwright.json`` into a model's folder."""
        write_json(folder / FILE, self.model_dump(exclude={"dimensions"} if self.dimensions is None else None))

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


logging.disable_progress_bar()


def load_model(
    folder: Path, max_length: MaxLength, device: str | None = None, name: str | None = None
) -> "SentenceTransformer":
    """Load a folder in float32, without network access and without prompts: texts come with their prefixes.

    ``name`` is for messages.

    Raises:
        InputError: the folder does not contain a model, or the model reads fewer than ``max_length`` tokens.
    """
    from sentence_transformers import SentenceTransformer  # takes seconds, and a launcher needs none of it

    what = f"model '{name or folder}'"
    with loading(what):
        model = SentenceTransformer(str(folder), device=device, local_files_only=True).float()
    limit_length(what, model, max_length)
    set_prompts(model, Prefix())
    model.similarity_fn_name = "cosine"  # as here
    model.truncate_dim = None  # whole vectors are trained; whoever wants others cuts them
    return model


def set_prompts(model: "BaseModel", prefix: Prefix) -> None:
    """Let ``encode_query`` and ``encode_document`` of sentence-transformers put the prefixes before texts.

    ``encode``, which does not know the side, puts none.
    """
    model.prompts = {side: prefix.of(side) for side in SIDES}
    model.default_prompt_name = None


def draw_weights(model: nn.Module, seed: int) -> None:
    """Draw the vectors of a static model; NumPy's numbers are the same on every processor, torch's are not."""
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    for module in model.modules():
        if isinstance(module, StaticEmbedding):
            weights = module.embedding.weight.data
            drawn = np.random.default_rng(seed).standard_normal(tuple(weights.shape), np.float32)
            weights.copy_(torch.from_numpy(drawn))


def save_model(model: "SentenceTransformer", folder: Path, prefix: Prefix) -> None:
    """Write ``folder``, with the prefixes as the prompts of ``encode_query`` and ``encode_document``."""
    set_prompts(model, prefix)
    model.save(str(folder), create_model_card=False)


def settle_tokenizer(folder: Path, max_length: int | None = None) -> None:
    """Let the ``tokenizer.json`` of a saved model, wherever in its folder it lies, cut at ``max_length``, and not pad.

    Tokenizers keep padding and truncation of their last call. A run that was resumed after its last step has not called
    any, and would write other bytes. Whoever calls a tokenizer says how to pad and cut, but for static models, which
    would read whole texts elsewhere.
    """
    for file in folder.rglob("tokenizer.json"):
        tokenizer = Tokenizer.from_file(str(file))
        tokenizer.no_padding()
        if max_length is None:
            tokenizer.no_truncation()
        else:
            tokenizer.enable_truncation(max_length)
        tokenizer.save(str(file))
