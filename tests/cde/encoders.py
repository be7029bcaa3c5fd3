"""Two-stage encoders with random weights, one for each kind of position encoding."""

import tempfile
from collections.abc import Sequence

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn
from transformers import (
    BertConfig,
    BertModel,
    ModernBertConfig,
    ModernBertModel,
    NomicBertConfig,
    NomicBertModel,
    PreTrainedModel,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5EncoderModel,
)

from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder, Form
from tests.tiny_models import VOCABULARY, WIDTH, word_pieces

FORMS: tuple[Form, ...] = ("gated", "sequence")
SMALL = {"vocab_size": len(VOCABULARY), "hidden_size": WIDTH, "num_hidden_layers": 3, "num_attention_heads": 2}
KINDS = {
    "learned": lambda: BertModel(BertConfig(**SMALL, intermediate_size=32)),
    "learned, offset": lambda: RobertaModel(RobertaConfig(**SMALL, intermediate_size=32, pad_token_id=1)),
    "rotary": lambda: NomicBertModel(NomicBertConfig(**SMALL, intermediate_size=32)),
    "rotary, windows": lambda: ModernBertModel(
        ModernBertConfig(**SMALL, intermediate_size=32, local_attention=8, global_attn_every_n_layers=3, pad_token_id=0)
    ),
    "relative": lambda: T5EncoderModel(
        T5Config(vocab_size=len(VOCABULARY), d_model=WIDTH, d_kv=8, d_ff=32, num_layers=3, num_heads=2)
    ),
}


def backbone(kind: str, seed: int = 0) -> PreTrainedModel:
    """A three-layer encoder; attention windows, if it has any, are smaller than the tests' texts."""
    torch.manual_seed(seed)
    made: PreTrainedModel = KINDS[kind]().eval()
    with torch.no_grad():
        for parameter in made.parameters():  # the default weights are too small to affect a test
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return made


def sentence_model(
    kind: str = "learned", seed: int = 0, pooling: str = "mean", more: Sequence[nn.Module] = ()
) -> SentenceTransformer:
    """A sentence-transformers model of one kind."""
    with tempfile.TemporaryDirectory() as folder:
        backbone(kind, seed).save_pretrained(folder)
        word_pieces().save_pretrained(folder)
        encoder = Transformer(folder, max_seq_length=48)
    modules = [encoder, Pooling(WIDTH, pooling_mode=pooling), *more]
    return SentenceTransformer(modules=modules, device="cpu").eval()


def encoder(
    kind: str = "learned", documents: int = 5, *, shared: bool = False, form: Form = "gated", **options: object
) -> ContextualEncoder:
    """A two-stage encoder that attends to its context; both stages are of one kind, with different weights unless
    ``shared``."""
    second = sentence_model(kind, 2)
    first = second if shared else sentence_model(kind, 1)
    if form == "sequence":
        options = {"bias": -1.0, **options}
    made = ContextualEncoder(first, second, documents=documents, form=form, **options)
    torch.manual_seed(3)
    for each in made.new_parameters():
        each.data = torch.randn_like(each) + 1
    return made.eval()
