"""The kinds of vectors: ``kind`` in an entry of ``embed.models``."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from batchwright.core.errors import InputError
from batchwright.core.params import load_params
from batchwright.formats.vectors import VectorStore
from pipelines.embed.params import EmbedParams, EncoderParams
from tests.embed.conftest import RunEmbed
from tests.end_to_end.docs import Section
from tests.helpers import write_params, write_rows
from tests.tiny_models import word_pieces

MODEL = {"name": "./m", "max_length": 16, "batch_size": 8}


def test_an_entry_without_a_kind_is_a_model(workspace: Path) -> None:
    write_params(workspace, {"embed.models": {"a": MODEL, "b": {"kind": "model", **MODEL}}})
    models = load_params("embed", EmbedParams).models
    assert models["a"] == models["b"] == EncoderParams(**MODEL)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({**MODEL, "max_lenght": 3}, "unknown parameter 'embed.models.x.max_lenght'; did you mean 'max_length'?"),
        ({"max_length": 8}, "parameter 'embed.models.x.name' is missing"),
        ({"kind": "bm52"}, "parameter 'embed.models.x.kind': unknown value 'bm52'; did you mean 'bm25'?"),
        ({"kind": "bm25", "k2": 1}, "unknown parameter 'embed.models.x.k2'; did you mean 'k1'?"),
        ({"kind": "tfidf", "k1": 1}, "unknown parameter 'embed.models.x.k1'; known: dimensions, kind, sample"),
        ({"kind": "bm25", "b": 2}, "parameter 'embed.models.x.b': Input should be less than or equal to 1 (found 2)"),
        ({"kind": "file"}, "parameter 'embed.models.x.path' is missing"),
        ("minilm", "parameter 'embed.models.x': "),
    ],
)
def test_a_wrong_entry_is_explained(workspace: Path, entry: Any, message: str) -> None:
    write_params(workspace, {"embed.models": {"x": entry}})
    with pytest.raises(InputError) as raised:
        load_params("embed", EmbedParams)
    assert str(raised.value).splitlines()[0].startswith(f"params.yaml: {message}")


def test_the_entries_shown_in_the_documentation_are_accepted(workspace: Path) -> None:
    shown = Section("docs/your-data.md", "Vectors").text.split("```yaml\n")[1].split("```")[0]
    Path("params.yaml").write_text(shown)
    assert [entry.kind for entry in load_params("embed", EmbedParams).models.values()] == ["model", "tfidf", "file"]


def test_the_stage_computes_every_kind(workspace: Path, run_embed: RunEmbed) -> None:
    write_rows("birds", [("red fish", "blue fish", "train")])
    Path("raw/vectors").mkdir(parents=True)
    given = pa.table({"text": ["red fish", "blue fish"], "vector": [[1.0, 0.0], [0.0, 2.0]]})
    pq.write_table(given, "raw/vectors/mine.parquet")
    entries = {"words": {"kind": "bm25"}, "plain": {"kind": "tfidf", "dimensions": 4}, "mine": {"kind": "file"}}
    entries["mine"]["path"] = "raw/vectors/mine.parquet"
    write_params(workspace, {"embed.models": entries})
    assert run_embed() == ", ".join(f"2 vectors of '{name}' (2 encoded now)" for name in sorted(entries))
    widths = {name: VectorStore.open(Path("data/vectors") / name).of("birds").vectors.shape[1] for name in entries}
    assert widths == {"words": 256, "plain": 4, "mine": 2}


@pytest.mark.parametrize("kind", ["words", "given"])
def test_texts_with_vectors_of_zeros_are_told(
    workspace: Path, run_embed: RunEmbed, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    write_rows("birds", [("red fish", "blue fish", "train"), ("\u0444", "old fish", "train")])
    texts, vectors = ["red fish", "blue fish", "\u0444", "old fish"], [[1.0], [1.0], [0.0], [1.0]]
    Path("raw/vectors").mkdir(parents=True)
    pq.write_table(pa.table({"text": texts, "vector": vectors}), "raw/vectors/given.parquet")
    entries = {"words": {"kind": "tfidf"}, "given": {"path": "raw/vectors/given.parquet"}}
    write_params(workspace, {"embed.models": {kind: entries[kind]}})
    run_embed()
    told = f"'{kind}' reads nothing in 1 of 4 texts of 'birds' (25%), such as '\u0444': their vectors are 0"
    assert capsys.readouterr().err.startswith(f"embed: warning: {told}")


def test_a_static_model_reads_at_most_max_length_tokens(workspace: Path, run_embed: RunEmbed) -> None:
    folder = "raw/models/static"
    static = StaticEmbedding(word_pieces(), embedding_dim=8)
    SentenceTransformer(modules=[static], device="cpu").save(folder, create_model_card=False)
    write_params(workspace, {"embed.models": {"static": {"name": folder, "max_length": 3, "batch_size": 8}}})
    write_rows("birds", [("w1 w2 w3", "w1 w2 w3 w4 w5", "train"), ("w5 w6", "w7", "train")])
    assert run_embed() == "4 vectors of 'static' (4 encoded now)"
    found = VectorStore.open(Path("data/vectors/static")).of("birds")
    direct = SentenceTransformer(folder, device="cpu").encode(["w1 w2 w3", "w5 w6"], normalize_embeddings=True)
    np.testing.assert_allclose(found.of("query", ["w1 w2 w3", "w5 w6"]), direct, atol=1e-3)
    np.testing.assert_array_equal(found.of("document", ["w1 w2 w3 w4 w5"]), found.of("query", ["w1 w2 w3"]))
