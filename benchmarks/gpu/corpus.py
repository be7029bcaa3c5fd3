"""Generated shards, whose words are tokens, and BERTs with random weights that read them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from batchwright.core.fingerprint import content_id
from batchwright.formats.shards import ShardSet
from batchwright.retrievers.common.model_folder import ModelInfo
from benchmarks.gpu.form import Form, Shape
from benchmarks.planted_batches import make_batch, write_batches

WORDS = 20_000
SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}


def write_shards(folder: Path, batches: int, size: int, length: int) -> Path:
    """Write batches of ``size`` pairs of ``length`` tokens each, [CLS] and [SEP] included, and return ``folder``.

    Half of a document's words are its query's.
    """
    rng = np.random.default_rng(0)
    words = rng.integers(WORDS, size=(batches, size, 2, length - 2))
    words[:, :, 1, ::2] = words[:, :, 0, ::2]
    made = [
        make_batch([_pair(*(" ".join(f"w{word}" for word in side) for side in pair)) for pair in own])
        for own in words.tolist()
    ]
    write_batches(folder, made, epochs=1)
    return folder


def texts(shards: Path) -> Iterator[str]:
    """Yield the texts of all pairs."""
    for batch in ShardSet.open(shards).columns("query", "document"):
        yield from batch["query"].to_pylist()
        yield from batch["document"].to_pylist()


def write_start(folder: Path, shape: Shape, length: int, read: Iterable[str]) -> Path:
    """Write a model with random weights that knows the words of the texts ``read``."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(
        read, trainers.WordLevelTrainer(vocab_size=30_522, special_tokens=[*SPECIAL.values()])
    )
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.inner,
    )
    bert = folder / "bert"
    BertModel(config).save_pretrained(bert)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)  # type: ignore[no-untyped-call]
    fast.save_pretrained(bert)
    transformer = Transformer(str(bert))
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")
    SentenceTransformer(modules=[transformer, pooling], device="cpu").save(str(folder), create_model_card=False)
    ModelInfo(variant="biencoder", max_length=length).write(folder)
    return folder


def base_start(folder: Path, form: Form) -> Path:
    """Write the model to time, once and with all words."""
    start = folder / "base"
    if not start.exists():
        write_start(start, form.base, max(form.sizes)[0], [" ".join(f"w{word}" for word in range(WORDS))])
    return start


def _pair(query: str, document: str) -> dict[str, object]:
    texts = {"id": content_id(query, document), "query": query, "document": document}
    return {**texts, "domain": "words", "negatives": [], "cluster": 0}
