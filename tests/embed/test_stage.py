"""``python -m stages embed``: the vectors, identical bytes under every runner, and errors."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Router

from batchwright.core.atomic import CHECKSUMS
from batchwright.core.errors import InputError
from batchwright.core.files import read_json
from batchwright.core.fingerprint import text_keys
from batchwright.core.grid import unit
from batchwright.formats.pairs import read_pairs
from batchwright.formats.vectors import VectorStore
from pipelines.embed import handler
from pipelines.embed.chunks import cut_chunks
from tests.embed.conftest import RunEmbed
from tests.helpers import REPO, run_on_full_disk, run_python, topic_pairs, tree, write_pairs, write_params, write_rows
from tests.job_service import portable_runner
from tests.tiny_models import save_bert, save_roberta

DATA = Path("data/vectors")
TINY = DATA / "tiny"


def texts_of(domain: str) -> list[str]:
    pairs = read_pairs(Path("data/pairs"), domain)
    return [*pairs["query"].to_pylist(), *pairs["document"].to_pylist()]


def test_vectors_equal_those_of_the_encoder_called_chunk_by_chunk(
    corpus: Path, run_embed: RunEmbed, tiny_bert: Path
) -> None:
    assert run_embed() == "140 vectors of 'tiny' (140 encoded now)"
    model = SentenceTransformer(str(tiny_bert), device="cpu")
    model.max_seq_length = 16
    for domain in ("birds", "fish/small"):
        chunks = list(cut_chunks(texts_of(domain)))
        assert len(chunks) >= 2
        found = VectorStore.open(TINY).of(domain)
        for chunk in chunks:
            direct = unit(model.encode(chunk.texts, batch_size=8))
            np.testing.assert_array_equal(found.of("query", chunk.texts), direct)
    np.testing.assert_allclose(np.linalg.norm(found.vectors.astype(np.float64), axis=1), 1, atol=1e-3)


def test_the_store_describes_its_encoder_and_nothing_about_the_machine(corpus: Path, run_embed: RunEmbed) -> None:
    run_embed()
    described = read_json(TINY / "encoder.json", made_by="embed")
    assert set(described) == {
        "kind",
        "name",
        "revision",
        "pickled_weights",
        "max_length",
        "batch_size",
        "prefixes",
        "weights",
    }
    assert {file.name for file in TINY.rglob("*") if file.is_file()} == {"encoder.json", "keys.npy", "vectors.npy"}


def test_a_prefix_is_added_to_the_texts_of_its_side_and_domain(
    workspace: Path, run_embed: RunEmbed, encoder: dict[str, Any], tiny_bert: Path
) -> None:
    encoder["prefixes"] = {
        "default": {"query": "search_query: ", "document": "search_document: "},
        "domains": {"intents": {"query": "classification: "}},
    }
    write_params(workspace, {"embed.models": {"tiny": encoder}})
    for domain in ("birds", "intents"):
        write_rows(domain, [("w1 w2", "w3", "train")])
    run_embed()
    expected = {
        "birds": ["search_query: w1 w2", "search_document: w3"],
        "intents": ["classification: w1 w2", "w3"],
    }
    model = SentenceTransformer(str(tiny_bert), device="cpu")
    for domain, texts in expected.items():
        found = VectorStore.open(TINY).of(domain)
        np.testing.assert_array_equal(
            np.sort(np.load(TINY / domain / "keys.npy").view("S16")), np.sort(text_keys(texts).view("S16"))
        )
        pair = np.concatenate([found.of("query", ["w1 w2"]), found.of("document", ["w3"])])
        np.testing.assert_allclose(pair, model.encode(texts, normalize_embeddings=True), atol=1e-3)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, ["w5 w1 w2", "w6 w3"]), ({"prefixes": {}}, ["w1 w2", "w3"])],
    ids=["own", "none"],
)
def test_a_models_prompts_are_its_prefixes_unless_parameters_say_otherwise(
    workspace: Path, run_embed: RunEmbed, encoder: dict[str, Any], changes: dict[str, Any], expected: list[str]
) -> None:
    file = Path(encoder["name"], "config_sentence_transformers.json")
    model = SentenceTransformer(str(file.parent), device="cpu").encode(expected, normalize_embeddings=True)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"prompts": {"query": "w5 ", "passage": "w6 "}}))
    write_params(workspace, {"embed.models": {"tiny": encoder | changes}})
    write_rows("birds", [("w1 w2", "w3", "train")])
    run_embed()
    found = VectorStore.open(TINY).of("birds")
    pair = np.concatenate([found.of("query", ["w1 w2"]), found.of("document", ["w3"])])
    np.testing.assert_allclose(pair, model, atol=1e-3)


def test_a_prefix_that_leaves_no_room_for_texts_is_refused(
    workspace: Path, run_embed: RunEmbed, encoder: dict[str, Any]
) -> None:
    encoder |= {"max_length": 4, "prefixes": {"domains": {"birds": {"query": "w1 w2 w3 "}}}}
    write_params(workspace, {"embed.models": {"tiny": encoder}})
    write_rows("birds", [("w1 w2", "w3", "train")])
    with pytest.raises(InputError, match="reads nothing behind the prefix 'w1 w2 w3 '"):
        run_embed()


def test_models_that_read_no_texts_or_sides_differently_are_refused(
    workspace: Path, run_embed: RunEmbed, encoder: dict[str, Any]
) -> None:
    write_rows("birds", [("w1 w2", "w3", "train")])
    model = SentenceTransformer(str(encoder["name"]), device="cpu")
    router = Router.for_query_document(query_modules=[*model], document_modules=[*model])
    refused: list[tuple[list[Any], str]] = [
        ([model[0]], "makes no vectors of texts; save it with a module Pooling"),
        ([*model, Dense(3, 3)], r"cannot be loaded \(mat1 and mat2 shapes cannot be multiplied"),
        ([router], "reads queries otherwise than documents, but a text has one vector"),
    ]
    for modules, message in refused:
        shutil.rmtree(encoder["name"])
        SentenceTransformer(modules=modules, device="cpu").save(str(encoder["name"]), create_model_card=False)
        with pytest.raises(InputError, match=f"^model 'raw/models/tiny': {message}"):
            run_embed()


def test_tokens_beyond_max_length_are_not_read(workspace: Path, run_embed: RunEmbed, encoder: dict[str, Any]) -> None:
    write_params(workspace, {"embed.models": {"tiny": {**encoder, "max_length": 4}}})
    write_rows("birds", [("w1 w2", "w1 w2 w3", "train")])
    run_embed()
    found = VectorStore.open(TINY).of("birds")
    np.testing.assert_allclose(found.of("query", ["w1 w2"]), found.of("document", ["w1 w2 w3"]), atol=1e-3)


@pytest.mark.parametrize(("save", "most"), [(save_bert, 512), (save_roberta, 32)])
def test_more_tokens_than_a_model_reads_are_an_input_error(
    workspace: Path, tmp_path: Path, run_embed: RunEmbed, save: Callable[[Path], Path], most: int
) -> None:
    shutil.copytree(save(tmp_path / "made"), "raw/models/short")
    write_rows("birds", [("w1", "w1 " * 700, "train")])
    encoder = {"name": "raw/models/short", "batch_size": 8}
    write_params(workspace, {"embed.models": {"tiny": {**encoder, "max_length": most}}})
    assert run_embed() == "2 vectors of 'tiny' (2 encoded now)"
    write_params(workspace, {"embed.models": {"tiny": {**encoder, "max_length": most + 1}}})
    message = f"model 'raw/models/short': reads {most} tokens; lower max_length from {most + 1} to at most {most}"
    with pytest.raises(InputError, match=message):
        run_embed()


@pytest.mark.parametrize("options", ["", "--direct_running_mode=multi_threading --direct_num_workers=2"])
def test_a_fresh_run_produces_the_same_bytes_however_beam_runs_it(
    corpus: Path, run_embed: RunEmbed, monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    run_embed()
    first = tree(DATA)
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", "another-scratch")
    monkeypatch.setenv("BEAM_OPTIONS", f"--runner=FnApiRunner {options}")
    assert run_embed() == "140 vectors of 'tiny' (140 encoded now)"
    assert tree(DATA) == first


@pytest.mark.slow
def test_worker_processes_produce_the_same_bytes(
    corpus: Path, run_embed: RunEmbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the patched chunk size does not reach other processes
    monkeypatch.chdir(corpus)
    run_embed()
    first = tree(DATA)
    monkeypatch.setenv("PYTHONPATH", str(REPO))
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", "another-scratch")
    monkeypatch.setenv("BEAM_OPTIONS", "--direct_running_mode=multi_processing --direct_num_workers=2")
    assert run_embed() == "140 vectors of 'tiny' (140 encoded now)"
    assert tree(DATA) == first


@pytest.mark.slow
def test_a_portable_runner_produces_the_same_bytes(
    corpus: Path, run_embed: RunEmbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_embed()
    first = tree(DATA)
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", "another-scratch")
    with portable_runner(tmp_path / "port") as options:
        monkeypatch.setenv("BEAM_OPTIONS", options)
        assert run_embed() == "140 vectors of 'tiny' (140 encoded now)"
    assert tree(DATA) == first


def test_a_second_run_encodes_nothing(corpus: Path, run_embed: RunEmbed) -> None:
    run_embed()
    first = tree(DATA)
    assert run_embed() == "140 vectors of 'tiny' (0 encoded now)"
    assert tree(DATA) == first


def test_a_new_domain_encodes_only_its_own_texts_and_changes_no_other_domain(corpus: Path, run_embed: RunEmbed) -> None:
    run_embed()
    first = tree(DATA)
    write_pairs("mammals", topic_pairs(20, seed=2))
    assert run_embed() == "180 vectors of 'tiny' (40 encoded now)"
    assert {name: content for name, content in tree(DATA).items() if "mammals" not in name} == first


def test_an_added_pair_encodes_only_the_chunks_it_falls_into(corpus: Path, run_embed: RunEmbed) -> None:
    run_embed()
    write_pairs("birds", [*topic_pairs(40), ("topic1 one more", "topic1 one more document")])
    summary = run_embed()
    assert summary.startswith("142 vectors of 'tiny' (")
    assert 2 <= int(summary.split("(")[1].split()[0]) < 80


def test_another_prefix_length_or_batch_size_reuses_no_vectors(
    corpus: Path, run_embed: RunEmbed, encoder: dict[str, Any]
) -> None:
    run_embed()
    for change in ({"max_length": 8}, {"batch_size": 4}, {"prefixes": {"default": {"query": "q ", "document": "d "}}}):
        write_params(corpus, {"embed.models": {"tiny": encoder | change}})
        assert run_embed() == "140 vectors of 'tiny' (140 encoded now)"


def test_every_encoder_has_its_own_vectors(corpus: Path, run_embed: RunEmbed, encoder: dict[str, Any]) -> None:
    write_params(corpus, {"embed.models": {"tiny": encoder, "a.b": {**encoder, "max_length": 8}}})
    run_embed()
    assert {folder.name for folder in DATA.iterdir()} == {"tiny", "a.b", CHECKSUMS}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nowhere", r"model '\./nowhere': no such folder"),
        ("package:not_installed_here", "that package is not installed"),
        ("nobody/not-in-the-cache", "neither a local folder nor available from the hub"),
    ],
)
def test_a_missing_model_is_explained_and_nothing_is_written(
    corpus: Path, run_embed: RunEmbed, encoder: dict[str, Any], name: str, message: str
) -> None:
    write_params(corpus, {"embed.models": {"tiny": encoder | {"name": name}}})
    with pytest.raises(InputError, match=message):
        run_embed()
    assert [path.name for path in Path("data").iterdir()] == ["pairs"]


DAMAGES = [
    ("config.json", '"num_hidden_layers": 2', '"num_hidden_layers": 3', "has no weights 'encoder.layer.2."),
    ("config.json", '"num_hidden_layers": 2', '"num_hidden_layers": "x"', "cannot be loaded (Validation error"),
    ("config.json", '"hidden_size": 16', '"hidden_size": 32', "the shapes of its weights do not match its config"),
    ("modules.json", "sentence_transformers.", "os.", "cannot be loaded (The model"),
    ("tokenizer.json", "{", "", "cannot be loaded ("),
]
EMBED_IN = """
import os, sys
from stages.__main__ import main
for folder in sys.argv[1:]:
    os.chdir(folder)
    try:
        main(["embed"])
    except SystemExit as ended:
        print(ended.code)
"""


def test_a_damaged_model_is_one_message(corpus: Path, tiny_bert: Path, encoder: dict[str, Any], tmp_path: Path) -> None:
    """Whatever libraries print of it: the first damage is met while they are imported."""
    used = dict.fromkeys(("filter.vectors", "cluster.vectors"), "tiny")
    write_params(corpus, used | {"embed.models": {"tiny": encoder | {"name": "raw/models/bert"}}})
    folders = [str(shutil.copytree(corpus, tmp_path / str(number))) for number in range(len(DAMAGES))]
    for folder, (file, before, after, _) in zip(folders, DAMAGES, strict=True):
        source = Path(shutil.copytree(tiny_bert, Path(folder, "raw/models/bert")))
        (source / file).write_text((source / file).read_text().replace(before, after, 1))
    ended = run_python("-c", EMBED_IN, *folders, cwd=corpus)
    assert (ended.returncode, ended.stdout) == (0, "1\n" * len(DAMAGES)), ended.stderr
    for line, (*_, message) in zip(ended.stderr.splitlines(), DAMAGES, strict=True):
        assert line.startswith(f"embed: error: model 'raw/models/bert': {message}")


def test_a_full_disk_gives_one_message_and_no_partial_files(corpus: Path, tmp_path: Path) -> None:
    # One page has room for one chunk, so the next one fails in a Beam worker.
    ended, left = run_on_full_disk("embed", cwd=corpus, pages=1, outside=tmp_path)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith("embed: error: the disk is full; free space or point BATCHWRIGHT_SCRATCH to another")
    assert len(ended.stderr.splitlines()) == 1
    assert not [name for name in left if name.startswith(("data/vectors", "data/."))]
    chunks = [name for name in left if name.startswith(".scratch/embed")]
    assert len(chunks) <= 1
    assert all(name.endswith(".chunk") and "/." not in name for name in chunks)


def test_vectors_that_are_not_finite_are_refused(
    corpus: Path, run_embed: RunEmbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = handler.encode

    def broken(model: SentenceTransformer, texts: list[str], batch_size: int) -> np.ndarray:
        vectors = real(model, texts, batch_size)
        vectors[-1, 0] = np.nan if texts[0] in texts_of("fish/small") else 0
        return vectors

    monkeypatch.setattr(handler, "encode", broken)
    with pytest.raises(InputError, match="domain 'fish/small': the encoder returned NaN or infinity"):
        run_embed()
    assert not DATA.exists()


def test_an_option_unknown_to_beam_is_explained(
    corpus: Path, run_embed: RunEmbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEAM_OPTIONS", "--runner=NoSuchRunner")
    with pytest.raises(InputError, match=r"environment variable BEAM_OPTIONS: .*NoSuchRunner"):
        run_embed()
