"""Encoders from the hub, with the architectures of the papers' profiles."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from batchwright.core.files import read_json
from batchwright.formats.models import Side, locate_model, model_hash
from batchwright.formats.vectors import VectorStore
from tests.embed.conftest import RunEmbed
from tests.helpers import write_params, write_rows
from tests.tiny_models import put_on_hub, save_nomic, save_t5

PREFIXES = {"query": "search_query: ", "document": "search_document: "}


@pytest.mark.parametrize(
    ("save", "modules", "prefix"),
    [
        (save_t5, ["Transformer", "Pooling", "Dense", "Normalize"], {"query": "", "document": ""}),
        (save_nomic, ["Transformer", "Pooling"], PREFIXES),
    ],
)
def test_an_encoder_from_the_hub_produces_its_own_vectors(
    workspace: Path,
    tmp_path: Path,
    run_embed: RunEmbed,
    save: Callable[[Path], Path],
    modules: list[str],
    prefix: dict[str, str],
) -> None:
    name = f"tests/{save.__name__}"
    put_on_hub(save(tmp_path / "made"), name)
    encoder: dict[str, Any] = {"name": name, "max_length": 32, "batch_size": 8, "prefixes": {"default": prefix}}
    write_params(workspace, {"embed.models": {"hub": encoder}})
    write_rows("birds", [("topic1 w1 w2", "w3 some unknown words", "train"), ("w5", "w6 w7 w8 w9", "test")])
    assert run_embed() == "4 vectors of 'hub' (4 encoded now)"

    model = SentenceTransformer(str(locate_model(name)), device="cpu")
    assert [type(module).__name__ for module in model] == modules
    assert read_json(Path("data/vectors/hub/encoder.json"), "embed")["weights"] == model_hash(locate_model(name))
    found = VectorStore.open(Path("data/vectors/hub")).of("birds")
    asked: dict[Side, list[str]] = {
        "query": ["topic1 w1 w2", "w5"],
        "document": ["w3 some unknown words", "w6 w7 w8 w9"],
    }
    for side, texts in asked.items():
        direct = model.encode([prefix[side] + text for text in texts], normalize_embeddings=True)
        np.testing.assert_allclose(found.of(side, texts), direct, atol=2e-3)
