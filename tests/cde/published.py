"""Models as the paper's authors published them, with random weights, and what they compute, written out slowly.

Facts are from github.com/jxmorris12/cde: ``cde/model.py`` and ``cde/lib/nomic_bert`` of October 2024, with which
cde-small-v1 was trained, and ``cde/model.py`` of January 2025 for cde-small-v2.
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from tests.tiny_models import VOCABULARY, word_pieces

Version = Literal["v1", "v2"]
VERSIONS: tuple[Version, ...] = ("v1", "v2")
PROMPTS = {"query": "search_query: ", "document": "search_document: "}
WIDTH, HEAD, LAYERS, INNER, COUNT = 128, 64, 3, 96, 8
DOCUMENTS: dict[Version, int] = {"v1": 6, "v2": 70}
"""J; with 70, a text's tokens do not see all documents within ModernBERT's windows."""
NEAR = 64
ALONE: dict[Version, dict[str, object]] = {
    "v1": {"embedder": "nomic-ai/nomic-bert-2048", "disable_transductive_rotary_embedding": True},
    "v2": {
        "embedder": "answerdotai/ModernBERT-base",
        "pool_ignore_instruction_tokens": True,
        "pooling_strategy": "mean",
    },
}
_BACKBONE: dict[Version, dict[str, tuple[int, ...]]] = {
    "v1": {
        "embeddings.word_embeddings.weight": (len(VOCABULARY) + 3, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "emb_ln.weight": (WIDTH,),
        "emb_ln.bias": (WIDTH,),
    },
    "v2": {
        "embeddings.tok_embeddings.weight": (len(VOCABULARY) + 3, WIDTH),
        "embeddings.norm.weight": (WIDTH,),
        "final_norm.weight": (WIDTH,),
    },
}
_LAYER: dict[Version, dict[str, tuple[int, ...]]] = {
    "v1": {
        "attn.Wqkv.weight": (3 * WIDTH, WIDTH),
        "attn.out_proj.weight": (WIDTH, WIDTH),
        "mlp.fc11.weight": (INNER, WIDTH),
        "mlp.fc12.weight": (INNER, WIDTH),
        "mlp.fc2.weight": (WIDTH, INNER),
        **{f"norm{place}.{part}": (WIDTH,) for place in (1, 2) for part in ("weight", "bias")},
    },
    "v2": {
        "attn_norm.weight": (WIDTH,),
        "attn.Wqkv.weight": (3 * WIDTH, WIDTH),
        "attn.Wo.weight": (WIDTH, WIDTH),
        "mlp_norm.weight": (WIDTH,),
        "mlp.Wi.weight": (2 * INNER, WIDTH),
        "mlp.Wo.weight": (WIDTH, INNER),
    },
}


@cache
def tensors(version: Version) -> dict[str, Tensor]:
    """All tensors of a published model, with the names that they have there, large enough to affect a test."""
    layers = {"v1": "encoder.layers", "v2": "layers"}[version]
    shapes = dict(_BACKBONE[version])
    for layer in range(LAYERS):
        shapes |= {f"{layers}.{layer}.{name}": shape for name, shape in _LAYER[version].items()}
    shapes.pop("layers.0.attn_norm.weight", None)
    stages = ("first_stage_model.embedder", "second_stage_model.backbone")
    every = {f"{stage}.{name}": shape for stage in stages for name, shape in shapes.items()}
    for name, rows in (
        ("first_stage_model.mlp.0", WIDTH),
        ("first_stage_model.mlp.2", WIDTH),
        ("second_stage_model.prompt_projection.0", WIDTH),
        ("second_stage_model.prompt_projection.2", COUNT * WIDTH),
        ("second_stage_model.output_projection.0", WIDTH),
        ("second_stage_model.output_projection.2", WIDTH),
    ):
        every |= {f"{name}.weight": (rows, WIDTH), f"{name}.bias": (rows,)}
    generator = torch.Generator().manual_seed(int(version[1:]))
    return {name: _drawn(name, shape, generator) for name, shape in every.items()}


def _drawn(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    drawn = torch.randn(shape, generator=generator)
    if len(shape) == 1:
        return drawn * 0.3 + (name.endswith("weight"))
    return drawn if "embeddings" in name else drawn * shape[1] ** -0.5


def publish(folder: Path, version: Version, **changes: object) -> Path:
    """Write the folder of a published model, whose code leaves a file behind when it runs."""
    folder.mkdir(parents=True)
    save_file(tensors(version), folder / "model.safetensors", metadata={"format": "pt"})
    word_pieces().save_pretrained(folder)
    code = {"AutoConfig": "model.ContextualModelConfig", "AutoModel": "model.ContextualDocumentEmbeddingTransformer"}
    config = {"auto_map": code, "transductive_corpus_size": DOCUMENTS[version], "max_seq_length": 512}
    for name, content in (
        ("config", {**config, "dataset_backbone": None, **ALONE[version], **changes}),
        ("config_sentence_transformers", {"prompts": PROMPTS, "similarity_fn_name": "cosine"}),
        ("modules", [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers_impl.Transformer"}]),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content))
    for name in ("model", "sentence_transformers_impl"):
        (folder / f"{name}.py").write_text("open('it ran', 'w').close()\n")
    return folder


def expected(version: Version, texts: Sequence[str], context: Sequence[str]) -> Tensor:
    """What a published model makes of ``texts``, with their prefixes, and of the documents that are their context."""
    documents = [_first(version, text) for text in context]
    return torch.stack([_second(version, text, documents) for text in texts]).float()


@cache
def _exact(version: Version) -> dict[str, Tensor]:
    return {name: each.double() for name, each in tensors(version).items()}


@cache
def _first(version: Version, text: str) -> Tensor:
    weights, start = _exact(version), "first_stage_model."
    own = _below(weights, f"{start}embedder.")
    words = _words(own, text)
    mean = _READ[version](own, words, torch.arange(len(words))).mean(dim=0)
    return _linear(weights, f"{start}mlp.2", functional.gelu(_linear(weights, f"{start}mlp.0", mean)))


def _second(version: Version, text: str, documents: list[Tensor]) -> Tensor:
    weights, start = _exact(version), "second_stage_model."
    own, ones = _below(weights, f"{start}backbone."), torch.ones(WIDTH).double()
    hidden = _linear(weights, f"{start}prompt_projection.0", ones).relu()
    prompts = _linear(weights, f"{start}prompt_projection.2", hidden).view(COUNT, WIDTH)
    words = _words(own, text)
    if version == "v2":  # once more when the sequence is read
        words = _norm(own, "embeddings.norm", words, 1e-5)
    rows = torch.cat([*(document[None] for document in documents), prompts, words])
    positions = torch.arange(len(rows)) + DOCUMENTS[version] - len(documents)
    if version == "v1":
        positions[: len(documents)] = 0
    states = _READ[version](own, rows, positions)[-len(words) :]
    if version == "v2":  # the instruction ends with the first colon
        states = states[1 + next((at for at, token in enumerate(_tokens(text)) if ":" in token), -1) :]
    mean = states.mean(dim=0)
    made = _linear(weights, f"{start}output_projection.0", mean).relu()
    made = _linear(weights, f"{start}output_projection.2", made)
    return made + mean if version == "v2" else made


def _nomic(own: dict[str, Tensor], rows: Tensor, positions: Tensor) -> Tensor:
    states = _norm(own, "emb_ln", rows, 1e-12)
    for layer in (f"encoder.layers.{number}." for number in range(LAYERS)):
        read = _attended(_linear(own, f"{layer}attn.Wqkv", states), positions, 1000)
        states = _norm(own, f"{layer}norm1", states + _linear(own, f"{layer}attn.out_proj", read), 1e-12)
        inner = _linear(own, f"{layer}mlp.fc11", states) * functional.silu(_linear(own, f"{layer}mlp.fc12", states))
        states = _norm(own, f"{layer}norm2", states + _linear(own, f"{layer}mlp.fc2", inner), 1e-12)
    return states


def _modern(own: dict[str, Tensor], rows: Tensor, positions: Tensor) -> Tensor:
    states = _norm(own, "embeddings.norm", rows, 1e-5)
    for number in range(LAYERS):
        layer = f"layers.{number}."
        read = states if number == 0 else _norm(own, f"{layer}attn_norm", states, 1e-5)
        qkv = _linear(own, f"{layer}attn.Wqkv", read)
        read = _attended(qkv, positions, 10_000, NEAR) if number % 3 else _attended(qkv, positions, 160_000)
        states = states + _linear(own, f"{layer}attn.Wo", read)
        inner, gate = _linear(own, f"{layer}mlp.Wi", _norm(own, f"{layer}mlp_norm", states, 1e-5)).chunk(2, dim=-1)
        states = states + _linear(own, f"{layer}mlp.Wo", functional.gelu(inner) * gate)
    return _norm(own, "final_norm", states, 1e-5)


_READ = {"v1": _nomic, "v2": _modern}


def _attended(qkv: Tensor, positions: Tensor, base: float, near: int | None = None) -> Tensor:
    """What heads of 64 numbers read of rows ``(l, 3h)``, or only of those that are ``near``."""
    queries, keys, values = (each.split(HEAD, dim=-1) for each in qkv.chunk(3, dim=-1))
    places = torch.arange(len(qkv))
    far = (places[:, None] - places).abs() > (len(qkv) if near is None else near)
    heads = []
    for query, key, value in zip(queries, keys, values, strict=True):
        scores = _turned(query, positions, base) @ _turned(key, positions, base).T / HEAD**0.5
        heads.append(scores.masked_fill(far, -torch.inf).softmax(dim=-1) @ value)
    return torch.cat(heads, dim=-1)


def _turned(rows: Tensor, positions: Tensor, base: float) -> Tensor:
    """Each number of the first half and its partner in the second, rotated by the position."""
    angles = positions[:, None] * base ** (-torch.arange(HEAD // 2).double() * 2 / HEAD)
    left, right = rows.chunk(2, dim=-1)
    return torch.cat([left * angles.cos() - right * angles.sin(), right * angles.cos() + left * angles.sin()], dim=-1)


def _below(weights: dict[str, Tensor], start: str) -> dict[str, Tensor]:
    return {name.removeprefix(start): each for name, each in weights.items() if name.startswith(start)}


_tokenizer = cache(word_pieces)


def _tokens(text: str) -> list[str]:
    return list(_tokenizer().convert_ids_to_tokens(_tokenizer()(text)["input_ids"]))


def _words(own: dict[str, Tensor], text: str) -> Tensor:
    ids = [VOCABULARY[token] for token in _tokens(text)]
    if "embeddings.tok_embeddings.weight" in own:
        return own["embeddings.tok_embeddings.weight"][ids]
    return own["embeddings.word_embeddings.weight"][ids] + own["embeddings.token_type_embeddings.weight"][0]


def _linear(weights: dict[str, Tensor], name: str, rows: Tensor) -> Tensor:
    made = rows @ weights[f"{name}.weight"].T
    return made + weights[f"{name}.bias"] if f"{name}.bias" in weights else made


def _norm(weights: dict[str, Tensor], name: str, rows: Tensor, epsilon: float) -> Tensor:
    centred = rows - rows.mean(dim=-1, keepdim=True)
    made = centred / (centred.square().mean(dim=-1, keepdim=True) + epsilon).sqrt() * weights[f"{name}.weight"]
    return made + weights[f"{name}.bias"] if f"{name}.bias" in weights else made
