"""Toy models and toy shards for tests."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, Qwen3Config, Qwen3Model

from batchwright.core.fingerprint import content_id
from batchwright.formats.prompts import FILE, own_prefixes
from batchwright.formats.shards import REASONS, format_with, pack_mask, pack_reasons
from batchwright.formats.shards.shard_set import SCHEMAS
from batchwright.retrievers import ModelInfo, Ranking, load_retriever
from batchwright.retrievers.common.model_folder import variant_of
from benchmarks.planted import write_batches
from stages.fetch import write_static_model
from trainers.common.job import DevMeasure, TrainJob, plan_job
from trainers.common.params import Common
from trainers.variants import load_variant

WORDS = [f"w{number}" for number in range(40)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
COMMON: dict[str, object] = {
    "epochs": 1,
    "mini_batch_size": 4,
    "learning_rate": 1e-3,
    "warmup_ratio": 0.1,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
}
"""A group ``train.common`` for toys."""


def write_toy_model(folder: Path, dropout: float = 0.1, layers: int = 2) -> Path:
    """A small BERT of width 16 with mean pooling, as a sentence-transformers folder."""
    torch.manual_seed(0)
    bert = folder.parent / f"{folder.name}-bert"
    config = BertConfig(
        vocab_size=len(SPECIAL) + len(WORDS) + 2,
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    BertModel(config).save_pretrained(bert)
    toy_tokenizer().save_pretrained(bert)
    transformer = Transformer(str(bert))
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")
    SentenceTransformer(modules=[transformer, pooling], device="cpu").save(str(folder), create_model_card=False)
    (folder / FILE).unlink(missing_ok=True)
    describe(folder)
    return folder


INSTRUCTION = "Instruct: find w1\nQuery:"


def write_toy_qwen3(folder: Path, side: str = "left") -> Path:
    """A small Qwen3 as Qwen3-Embedding is built: causal, padded on the ``side``, the state of the last token.

    Queries have an instruction, and texts end with the token that is also padding.
    """
    torch.manual_seed(0)
    words = ["<|endoftext|>", "[UNK]", "Instruct:", "find", "Query:", *WORDS]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing("$A <|endoftext|>", None, [("<|endoftext|>", 0)])
    special = {"pad_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "[UNK]"}
    sizes = {"vocab_size": len(words), "hidden_size": 16, "head_dim": 8, "intermediate_size": 32}
    heads = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.3}
    numbers = {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0, "max_position_embeddings": 64}
    made = folder.parent / f"{folder.name}-qwen3"
    Qwen3Model(Qwen3Config(**sizes, **heads, **numbers)).save_pretrained(made)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, padding_side=side, **special).save_pretrained(made)
    modules = [Transformer(str(made)), Pooling(16, pooling_mode="lasttoken"), Normalize()]
    prompts = {"query": INSTRUCTION, "document": ""}
    SentenceTransformer(modules=modules, device="cpu", prompts=prompts).save(str(folder), create_model_card=False)
    describe(folder, prefixes=own_prefixes(folder, "toy"))
    return folder


def write_toy_static(tokenizer: Path, folder: Path, seed: int) -> None:
    """A static model of random vectors, which reads 8 tokens by the tokenizer of a toy model."""
    folder.mkdir(parents=True, exist_ok=True)
    write_static_model(tokenizer, 8, 8, seed, folder)
    ModelInfo(variant="biencoder", max_length=8, random=True).write(folder)


def describe(folder: Path, **changes: object) -> Path:
    """Write or change a model's ``batchwright.json``; it reads 16 tokens unless ``changes`` say otherwise."""
    known = ModelInfo.read(folder).model_dump() if (folder / FILE).exists() else {"max_length": 16}
    ModelInfo.model_validate({"variant": variant_of(folder), **known, **changes}).write(folder)
    return folder


def toy_rows(count: int, seed: int = 0, negatives: int = 0) -> list[dict[str, object]]:
    """Pairs whose query and document share one rare word, so that there is something to learn."""
    generator = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        key, *others = generator.choice(WORDS, size=6, replace=False)
        query, document = f"{key} {others[0]}", f"{others[1]} {key} {others[2]}"
        rows.append(
            {
                "id": content_id(query, document),
                "query": query,
                "document": document,
                "domain": "toys",
                "negatives": [f"{others[3]} {others[4]} {number}" for number in range(negatives)],
            }
        )
    return rows


def toy_batch(rows: Sequence[dict[str, object]], masked: NDArray[np.bool_] | None = None) -> pa.RecordBatch:
    """One record batch; without ``masked``, every other document is a negative. All are masked by their score.

    Rows may have a teacher's ``scores``, a ``weight`` and ``metadata``.
    """
    mask = np.zeros((len(rows), len(rows)), bool) if masked is None else masked
    reasons = np.full(np.count_nonzero(mask), REASONS.index("score"), np.uint8)
    own = {"mask": pack_mask(mask), "reasons": pack_reasons(reasons, mask), "masked_share": mask.mean(axis=1).tolist()}
    full = [
        {"cluster": 0} | row | {"hardness": 0.0} | {name: values[place] for name, values in own.items()}
        for place, row in enumerate(rows)
    ]
    return pa.RecordBatch.from_pylist(full, schema=SCHEMAS[format_with(full[0])])


def write_toy_shards(folder: Path, batches: Sequence[pa.RecordBatch], epochs: int = 1) -> Path:
    """Write two shards, or one if there is only one batch, and their manifest."""
    folder.mkdir(parents=True)
    write_batches(folder, batches, epochs, shards=2)
    return folder


def toy_job(
    folder: Path,
    start_model: Path,
    shards: Path,
    variant: str = "biencoder",
    dev: DevMeasure | None = None,
    **changes: object,
) -> TrainJob:
    """A job in ``folder``; each of ``changes`` goes to the start model's description or the group that has its key."""
    common: dict[str, object] = {**COMMON, "learning_rate": 3e-3}
    own: dict[str, object] = {} if changes.get("loss") == "hinge" else {"temperature": 0.1}
    of_model = ModelInfo.model_fields.keys() - Common.model_fields.keys()
    described = {key: changes.pop(key) for key in of_model & changes.keys()}
    if start_model.is_dir() and not (start_model / FILE).exists():
        describe(start_model)
    if described:  # other tests share the start model
        start_model = describe(shutil.copytree(start_model, folder / "start", dirs_exist_ok=True), **described)
    for key, value in changes.items():
        (common if key in Common.model_fields else own)[key] = value
    return plan_job(
        name=variant,
        variant=variant,
        seed=7,
        common=Common.model_validate(common),
        params=load_variant(variant).Params.model_validate(own),
        start=start_model,
        shards=shards,
        model=folder / "model",
        curve=folder / "curve.tsv",
        dev=dev,
    )


def retrieve(
    folder: Path, queries: Sequence[str], documents: Sequence[str], k: int, max_length: int | None = None
) -> Ranking:
    """Index ``documents`` with a model that reads ``max_length`` tokens, and search them."""
    info = ModelInfo.read(folder)
    if max_length is not None:
        info = info.model_copy(update={"max_length": max_length})
    return load_retriever(folder, info).index(documents).search(queries, k)


def toy_tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *WORDS, "query:", "document:"])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
