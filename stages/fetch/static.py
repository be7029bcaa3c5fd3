"""Static models: one vector per token, whose mean is the text's vector."""

from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from batchwright.core.room import check_disk, check_memory
from batchwright.formats.models import loading

_COPIES = 2
"""How often weights are in memory: the module's, and those that are written."""


def write_static_model(source: Path, width: int, max_length: int, seed: int, folder: Path) -> None:
    """Write a static model with the tokenizer of ``source`` and random vectors of ``width``, drawn with ``seed``.

    It reads ``max_length`` tokens, also where others open it.

    Raises:
        InputError: ``source`` has no tokenizer that can be loaded, or there is not enough memory or disk.
    """
    with loading(f"model '{source}'"):
        tokenizer = AutoTokenizer.from_pretrained(source)
        if not isinstance(tokenizer, PreTrainedTokenizerFast):
            raise ValueError(f"{type(tokenizer).__name__} is not a fast tokenizer, which static models need")
    size = 4 * width * len(tokenizer)
    check_memory(_COPIES * size, f"a static model of {len(tokenizer):,} tokens")
    check_disk({folder: size}, f"a static model of {len(tokenizer):,} tokens")
    torch.manual_seed(seed)
    module = StaticEmbedding(tokenizer, embedding_dim=width)
    module.tokenizer.enable_truncation(max_length)
    SentenceTransformer(modules=[module], device="cpu").save(str(folder), create_model_card=False)
