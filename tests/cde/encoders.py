"""Two-stage encoders with random weights, one for each kind of position encoding."""

import torch
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

from batchwright.retrievers.cde.contextual_encoder import ContextualEncoder
from tests.tiny_models import VOCABULARY, WIDTH, word_pieces

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


def encoder(kind: str = "learned", documents: int = 5, **options: object) -> ContextualEncoder:
    """A two-stage encoder; both stages are of one kind, with different weights."""
    made = ContextualEncoder(
        backbone(kind, 1), backbone(kind, 2), word_pieces(), documents=documents, max_seq_length=48, **options
    )
    torch.manual_seed(3)
    made.null.data = torch.randn(WIDTH)
    return made.eval()
