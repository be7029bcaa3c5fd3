"""Which architectures a new encoder can have."""

from typing import Any

import pytest

from batchwright.core.errors import InputError
from trainers.pretraining.corpus import train_vocabulary
from trainers.pretraining.folder import new_encoder
from trainers.pretraining.params import NewEncoder

SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
ALLOWED: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("bert", "roberta", "modernbert", "deberta-v2", "mpnet"), SMALL),
    **dict.fromkeys(("albert", "electra"), SMALL | {"embedding_size": 16}),
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32},
}


@pytest.mark.parametrize("architecture", ALLOWED)
def test_encoders_that_predict_masked_tokens_can_be_built(architecture: str) -> None:
    params = NewEncoder(kind="new", model_type=architecture, config=ALLOWED[architecture])
    encoder = new_encoder(params, train_vocabulary(lambda: [["topic"]], 60))
    assert encoder.config.model_type == architecture
    assert encoder.get_input_embeddings().weight.shape[1] == 16


@pytest.mark.parametrize("architecture", ["t5", "vit", "gpt2", "bart"])
def test_other_models_and_encoder_decoders_are_refused(architecture: str) -> None:
    params = NewEncoder(kind="new", model_type=architecture)
    with pytest.raises(InputError, match=f"model_type: '{architecture}' is not an encoder that predicts masked tokens"):
        new_encoder(params, train_vocabulary(lambda: [["topic"]], 60))
