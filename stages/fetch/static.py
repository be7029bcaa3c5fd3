"""Static models: one vector per token, whose mean is the text's vector."""

from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from batchwright.formats.models import loading


def write_static_model(source: Path, width: int, max_length: int, seed: int, folder: Path) -> None:
    """Write a static model with the tokenizer of ``source`` and random vectors of ``width``, drawn with ``seed``.

    It reads ``max_length`` tokens, also where others open it.

    Raises:
        InputError: ``source`` has no tokenizer that can be loaded.
    """
    with loading(f"model '{source}'"):
        tokenizer = AutoTokenizer.from_pretrained(source)
        if not isinstance(tokenizer, PreTrainedTokenizerFast):
            raise ValueError(f"{type(tokenizer).__name__} is not a fast tokenizer, which static models need")
    torch.manual_seed(seed)
    module = StaticEmbedding(tokenizer, embedding_dim=width)
    module.tokenizer.enable_truncation(max_length)
    SentenceTransformer(modules=[module], device="cpu").save(str(folder), create_model_card=False)
