"""Start models: copied, or made static with another model's tokenizer."""

import json
import math
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from sentence_transformers.sentence_transformer.modules import Router, StaticEmbedding

from batchwright.core.errors import InputError
from batchwright.formats.models import Prefix, Prefixes, model_hash
from batchwright.retrievers.common.model_folder import ModelInfo, load_model
from stages.fetch import main
from tests.helpers import tree, write_params
from tests.tiny_models import WIDTH, save_nomic

START = Path("models/start/made")


def fetch(workspace: Path, source: Path, **changes: object) -> Path:
    runs = {"mine": {"start": str(START)}}
    write_params(workspace, {"start_models": {"made": {**_entry(source), **changes}}, "runs": runs})
    main("made")
    return START


def test_a_model_is_copied_with_how_it_reads_texts(workspace: Path, tiny_bert: Path) -> None:
    made = fetch(workspace, tiny_bert)
    copied = tree(made)
    assert copied.pop("batchwright.json")
    assert copied == tree(tiny_bert)
    assert ModelInfo.read(made).max_length == 8


def test_nomic_bert_as_it_was_pre_trained_is_read_without_its_head(workspace: Path, tmp_path: Path) -> None:
    made = save_nomic(tmp_path / "nomic")
    wanted = load_model(made, 8, "cpu").encode(["w1 w2"])
    weights = {f"bert.{key}": each for key, each in load_file(made / "model.safetensors").items()}
    head = {"cls.predictions.decoder.weight": weights["bert.embeddings.word_embeddings.weight"].clone()}
    save_file(weights | head, made / "model.safetensors", metadata={"format": "pt"})
    np.testing.assert_array_equal(load_model(fetch(workspace, made), 8, "cpu").encode(["w1 w2"]), wanted)


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


def test_a_static_model_reads_as_many_tokens_where_others_open_it(workspace: Path, tiny_bert: Path) -> None:
    folder = fetch(workspace, tiny_bert, static_width=6)
    length = ModelInfo.read(folder).max_length
    elsewhere = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    text = "w1 " * length
    cut, short = elsewhere.encode([f"{text} w2", text])
    np.testing.assert_array_equal(cut, short)


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


def test_a_folder_that_dvc_does_not_watch_is_refused(workspace: Path, tiny_bert: Path) -> None:
    write_params(workspace, {"start_models": {"made": {"name": str(tiny_bert), "max_length": 8}}})
    with pytest.raises(InputError, match="lies outside raw/models, so dvc repro would not notice when it changes"):
        main("made")
    assert not START.exists()


def test_a_start_model_that_nothing_starts_from_is_named_before_it_is_scored(
    workspace: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = _entry(tiny_bert)
    told = []
    for start in ("models/start/made-2", "models/start/made"):
        write_params(workspace, {"start_models": {"made": entry}, "runs": {"mine": {"start": start}}})
        main("made")
        told.append("start_models.made: nothing in params.yaml starts from it" in capsys.readouterr().err)
    assert told == [True, False]


@pytest.mark.parametrize(("named", "pooling"), [(True, ""), (False, "'mean'; if it was trained otherwise, save it")])
def test_a_model_that_leaves_open_how_it_pools_is_said_to_get_the_mean(
    workspace: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str], *, named: bool, pooling: str
) -> None:
    entry = _entry(tiny_bert)
    if not named:
        Path(str(entry["name"]), "modules.json").unlink()
    write_params(workspace, {"start_models": {"made": entry}, "runs": {"mine": {"start": "models/start/made"}}})
    main("made")
    said = capsys.readouterr().err
    assert (pooling in said) if pooling else not said


def _entry(source: Path) -> dict[str, object]:
    """The entry of a model, which is copied to where DVC watches models."""
    folder = Path("raw/models") / source.name
    shutil.copytree(source, folder, dirs_exist_ok=True)
    return {"name": str(folder), "max_length": 8}


def test_a_model_with_too_few_weights_is_refused_when_it_comes_in(workspace: Path, tiny_bert: Path) -> None:
    """Libraries would draw random weights for the layers that only config.json has."""
    source = Path(shutil.copytree(tiny_bert, workspace / "elsewhere/bert"))
    config = source / "config.json"
    config.write_text(config.read_text().replace('"num_hidden_layers": 2', '"num_hidden_layers": 3'))
    with pytest.raises(InputError, match=r"has no weights 'encoder\.layer\.2\..*', which its config.json requires"):
        fetch(workspace, source)
    assert not START.exists()


def _without_tokenizer(folder: Path) -> None:
    for file in folder.glob("*token*"):
        file.unlink()


def _more_words(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["moreover"] = len(tokenizer["model"]["vocab"])
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def _no_number(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    next(weight for key, weight in weights.items() if "word_embeddings" in key)[7] = math.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _pointer(folder: Path) -> None:
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:a\nsize 9\n")


def _own_code(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text()) | {"model_type": "new", "auto_map": {"AutoConfig": "c.C"}}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_without_tokenizer, "its tokenizer knows no words; is tokenizer.json missing?"),
        (_more_words, "its tokenizer gives 'moreover' the number .*, but it embeds only"),
        (_no_number, "its weights '.*word_embeddings.*' hold NaN"),
        (_pointer, "model.safetensors is not there, only Git LFS's pointer to it; run git lfs pull"),
        (_own_code, "brings code of its own, which is never run"),
    ],
)
def test_a_model_that_is_not_whole_is_refused_by_its_name_when_it_comes_in(
    workspace: Path, tiny_bert: Path, spoil: Callable[[Path], None], message: str
) -> None:
    source = Path(shutil.copytree(tiny_bert, workspace / "elsewhere/bert"))
    spoil(source)
    with pytest.raises(InputError, match=f"^model 'raw/models/bert': {message}"):
        fetch(workspace, source)
    assert not START.exists()


def test_a_model_that_cannot_be_loaded_is_refused_when_it_comes_in(workspace: Path, tiny_bert: Path) -> None:
    source = Path(shutil.copytree(tiny_bert, workspace / "elsewhere/bert"))
    modules = source / "modules.json"
    modules.write_text(modules.read_text().replace("sentence_transformers.", "os.", 1))
    with pytest.raises(InputError, match=r"cannot be loaded \(The model .* references the module class 'os\."):
        fetch(workspace, source)


def configured(model: Path, folder: Path, **changes: object) -> Path:
    """A copy of a model whose configuration of sentence-transformers says so."""
    source = Path(shutil.copytree(model, folder / "elsewhere/configured"))
    file = source / "config_sentence_transformers.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    return source


def test_an_adapter_is_refused_when_it_comes_in(workspace: Path, tiny_bert: Path) -> None:
    source = shutil.copytree(tiny_bert, workspace / "adapter")
    (source / "adapter_config.json").write_text("{}")
    with pytest.raises(InputError, match="'raw/models/adapter': is an adapter; merge it into its model"):
        fetch(workspace, source)


@pytest.mark.parametrize(
    ("prompts", "changes", "expected"),
    [
        ({"query": "ask: ", "document": ""}, {}, ("ask: ", "")),
        ({"query": "ask: ", "document": "", "passage": "read: "}, {}, ("ask: ", "read: ")),
        ({"query": "ask: ", "corpus": "all: "}, {}, ("ask: ", "all: ")),
        ({"query": "ask: "}, {"prefixes": {}}, ("", "")),
        ({"query": "ask: "}, {"prefixes": {"default": {"document": "own: "}}}, ("", "own: ")),
        ({"query": "ask: "}, {"static_width": 6}, ("", "")),
        ({"search_query": "ask: ", "search_document": "read: ", "STS": "same: "}, {}, ("ask: ", "read: ")),
        ({"retrieval.query": "ask: ", "retrieval.passage": "read: "}, {}, ("ask: ", "read: ")),
        ({"query": "ask: ", "code-query": "find: "}, {}, ("ask: ", "")),
    ],
)
def test_a_models_prompts_are_its_prefixes_unless_parameters_say_otherwise(
    workspace: Path,
    tiny_bert: Path,
    prompts: dict[str, str],
    changes: dict[str, object],
    expected: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = configured(tiny_bert, workspace, prompts=prompts, default_prompt_name=next(iter(prompts)))
    found = ModelInfo.read(fetch(workspace, source, **changes)).prefixes.default
    assert (found.query, found.document) == expected
    assert not capsys.readouterr().err


def test_prefixes_are_told_and_prompts_for_neither_side_too(
    workspace: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = {"STS": "same: ", "s2p_query": "a: ", "s2s_query": "b: "}
    source = configured(tiny_bert, workspace, prompts=prompts, default_prompt_name="STS")
    assert ModelInfo.read(fetch(workspace, source)).prefixes.texts() == []
    said = "start_models.made: of the model's prompts 'STS', 's2p_query', 's2s_query', it is not clear which are for"
    assert said in capsys.readouterr().err
    write_params(workspace, {"start_models": {"made": {**_entry(source), "prefixes": {"default": {"query": "q: "}}}}})
    assert main("made").endswith("; queries begin with 'q: ', documents with ''")


def test_a_prefix_that_leaves_no_room_for_texts_is_refused(workspace: Path, tiny_bert: Path) -> None:
    source = configured(tiny_bert, workspace, prompts={"query": "w1 w2 w3 w4 w5 w6 w7 "})
    with pytest.raises(
        InputError, match=r"reads nothing behind the prefix 'w1 w2 w3 .*, which is as long as max_length"
    ):
        fetch(workspace, source)
    assert fetch(workspace, source, max_length=12).exists()


def test_a_prompt_that_is_no_text_is_refused(workspace: Path, tiny_bert: Path) -> None:
    source = configured(tiny_bert, workspace, prompts={"query": 3})
    with pytest.raises(InputError, match=r"config_sentence_transformers\.json: cannot be loaded .*'query' is no text"):
        fetch(workspace, source)


def test_a_model_that_was_trained_here_keeps_its_prefixes(workspace: Path, tiny_bert: Path) -> None:
    source = configured(tiny_bert, workspace, prompts={"query": "old: "})
    prefixes = Prefixes(default=Prefix(query="q: "), domains={"d": Prefix(query="d: ")})
    ModelInfo(variant="biencoder", max_length=8, prefixes=prefixes).write(source)
    assert ModelInfo.read(fetch(workspace, source)).prefixes == prefixes


@pytest.mark.parametrize("similarity", ["dot", "euclidean"])
def test_a_model_for_another_similarity_is_refused_unless_cosine_is_wanted(
    workspace: Path, tiny_bert: Path, similarity: str
) -> None:
    source = configured(tiny_bert, workspace, similarity_fn_name=similarity)
    with pytest.raises(InputError, match=rf"was made for the similarity '{similarity}' .*set its similarity to cosine"):
        fetch(workspace, source)
    assert not START.exists()
    model = load_model(fetch(workspace, source, similarity="cosine"), 8, "cpu")
    assert model.similarity_fn_name == "cosine"


@pytest.mark.parametrize(
    ("similarity", "more", "same"),
    [
        ("dot", [Normalize()], True),
        ("euclidean", [Normalize()], True),
        ("manhattan", [Normalize()], False),
        ("dot", [Normalize(), Dense(WIDTH, 4)], False),
    ],
)
def test_inner_products_and_distances_of_vectors_of_unit_length_rank_as_cosines(
    workspace: Path, tiny_bert: Path, similarity: Any, more: list[torch.nn.Module], *, same: bool
) -> None:
    model = SentenceTransformer(str(tiny_bert), device="cpu")
    made = SentenceTransformer(modules=[*model, *more], device="cpu", similarity_fn_name=similarity)
    made.save(str(workspace / "elsewhere"), create_model_card=False)
    with nullcontext() if same else pytest.raises(InputError, match=f"was made for the similarity '{similarity}'"):
        fetch(workspace, workspace / "elsewhere")
    assert START.exists() == same


def test_what_a_model_cuts_from_its_vectors_is_read_as_in_training(workspace: Path, tiny_bert: Path) -> None:
    made = fetch(workspace, configured(tiny_bert, workspace, truncate_dim=4))
    assert load_model(made, 8, "cpu").encode(["w1"]).shape == (1, WIDTH)


def test_a_model_that_cuts_its_sides_by_modules_of_different_kinds_is_refused(workspace: Path, tiny_bert: Path) -> None:
    model = SentenceTransformer(str(tiny_bert), device="cpu")
    table = StaticEmbedding(model.tokenizer, embedding_dim=WIDTH)
    router = Router.for_query_document(query_modules=[table], document_modules=[*model])
    SentenceTransformer(modules=[router], device="cpu").save(str(workspace / "elsewhere"), create_model_card=False)
    with pytest.raises(InputError, match="begins with Router, where a StaticEmbedding and others are not cut alike"):
        fetch(workspace, workspace / "elsewhere")


def test_a_pooling_that_leaves_prompts_out_is_refused_with_prefixes(workspace: Path, tiny_bert: Path) -> None:
    model = SentenceTransformer(str(tiny_bert), device="cpu", prompts={"query": "q: "})
    model.set_pooling_include_prompt(False)
    model.save(str(workspace / "elsewhere"), create_model_card=False)
    with pytest.raises(InputError, match="leaves prompts out of its pooling, which training and search do not"):
        fetch(workspace, workspace / "elsewhere")
    assert fetch(workspace, workspace / "elsewhere", prefixes={}).exists()


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ({"query": 4}, "'start_models.made.max_length.document' is missing"),
        ({"query": 4, "document": 1}, "max_length.document': Input should be greater than or equal to 2"),
        (1, "max_length': Input should be greater than or equal to 2"),
        ({"query": 4, "document": 8, "length": 1}, "unknown parameter 'start_models.made.max_length.length'"),
    ],
)
def test_lengths_that_cannot_be_are_refused(workspace: Path, tiny_bert: Path, lengths: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fetch(workspace, tiny_bert, max_length=lengths)


def test_models_that_cannot_cut_sides_differently_are_refused(workspace: Path, tiny_bert: Path) -> None:
    lengths = {"query": 4, "document": 8}
    with pytest.raises(InputError, match="a static model cuts queries and documents alike; give max_length as one"):
        fetch(workspace, tiny_bert, static_width=6, max_length=lengths)
    static = Path(shutil.copytree(fetch(workspace, tiny_bert, static_width=6), workspace / "elsewhere"))
    with pytest.raises(InputError, match="begins with StaticEmbedding, which cuts queries and documents alike"):
        fetch(workspace, static, max_length=lengths)


@pytest.mark.parametrize(
    ("spoil", "unit", "message"),
    [
        (None, True, ""),
        (None, False, "its token vectors are not of unit length, as training makes them; save it with a last module"),
        (_without_tokenizer, True, "its tokenizer knows no words; is tokenizer.json missing?"),
        (_no_number, True, "its weights '.*word_embeddings.*' hold NaN"),
    ],
)
def test_a_model_with_a_vector_for_each_token_is_checked_when_it_comes_in(
    workspace: Path, tiny_bert: Path, spoil: Callable[[Path], None] | None, message: str, *, unit: bool
) -> None:
    modules = [SentenceTransformer(str(tiny_bert), device="cpu")[0], MultiVectorMask([])]
    more = [Normalize(module_input_name="token_embeddings")] if unit else []
    source = workspace / "elsewhere/tokens"
    MultiVectorEncoder(modules=[*modules, *more], device="cpu").save(str(source), create_model_card=False)
    if spoil:
        spoil(source)
    if not message:
        assert ModelInfo.read(fetch(workspace, source)).variant == "xtr"
        return
    with pytest.raises(InputError, match=f"^model 'raw/models/tokens': {message}"):
        fetch(workspace, source)
    assert not START.exists()
