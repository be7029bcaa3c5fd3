"""Start models: copied, or made static with another model's tokenizer."""

from pathlib import Path

import numpy as np
import pytest

from batchwright.core.errors import InputError
from batchwright.formats.models import model_hash
from batchwright.retrievers.common.info import ModelInfo
from batchwright.retrievers.common.sentence_model import load_model
from stages.fetch.stage import main
from tests.helpers import tree, write_params

START = Path("models/start/made")


def fetch(workspace: Path, source: Path, **changes: object) -> Path:
    write_params(workspace, {"start_models": {"made": {"name": str(source), "max_length": 8, **changes}}})
    main("made")
    return START


def test_a_model_is_copied_with_how_it_reads_texts(workspace: Path, tiny_bert: Path) -> None:
    made = fetch(workspace, tiny_bert)
    copied = tree(made)
    assert copied.pop("batchwright.json")
    assert copied == tree(tiny_bert)
    assert ModelInfo.read(made).max_length == 8


def test_a_static_model_has_a_vector_for_each_token_and_no_order(workspace: Path, tiny_bert: Path) -> None:
    model = load_model(fetch(workspace, tiny_bert, static_width=6), 8, "cpu")
    left, right, both = model.encode(["w1", "w2", "w2 w1"])
    assert both.shape == (6,)
    np.testing.assert_allclose(both, (left + right) / 2, atol=1e-6)


def test_a_static_model_reads_as_many_tokens_as_others(workspace: Path, tiny_bert: Path) -> None:
    model = load_model(fetch(workspace, tiny_bert, static_width=6), 2, "cpu")
    cut, short, other = model.encode(["w1 w2 w3", "w1 w2", "w1 w3"])
    np.testing.assert_array_equal(cut, short)
    assert not np.array_equal(cut, other)


def test_a_static_models_weights_follow_the_seed(workspace: Path, tiny_bert: Path) -> None:
    first = model_hash(fetch(workspace, tiny_bert, static_width=6))
    assert model_hash(fetch(workspace, tiny_bert, static_width=6)) == first
    write_params(workspace, {"base.seed": 2, "start_models": {"made": {**_entry(tiny_bert), "static_width": 6}}})
    main("made")
    assert model_hash(START) != first


def test_a_model_without_a_tokenizer_is_refused(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "model.safetensors").write_bytes(b"none")
    with pytest.raises(InputError, match="bare"):
        fetch(workspace, tmp_path / "bare", static_width=6)
    assert not START.exists()


def _entry(source: Path) -> dict[str, object]:
    return {"name": str(source), "max_length": 8}
