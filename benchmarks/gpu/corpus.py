"""The sizes to measure, and generated data of these sizes: shards whose words are tokens, and BERTs that read them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from batchwright.core.fingerprint import content_id
from batchwright.formats.shards import ShardSet
from batchwright.retrievers.common.model_folder import ModelInfo
from benchmarks.gpu.lengths import Lengths
from benchmarks.planted import make_batch, write_batches

WORDS = 20_000
SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A BERT: ``inner`` is the width of its feed-forward layers."""

    layers: int
    width: int
    heads: int
    inner: int

    def operations(self, length: int) -> int:
        """Multiplications and additions of the matrix products of a forward pass over a text of ``length`` tokens."""
        products = 4 * self.width**2 + 2 * self.width * self.inner + 2 * length * self.width
        return 2 * length * self.layers * products


@dataclass(frozen=True, kw_only=True)
class Form:
    """What is measured at which size.

    ``matrix`` is the side of the square matrices, ``products`` are the sizes of others, ``launches`` the number of tiny
    kernels and ``copied`` the bytes of the tensor to copy. ``base`` trains on batches that are ``usual``, of ``few``
    pairs, or of ``long`` texts, each given as the most tokens of a text and the pairs of a batch; ``chunk_tokens`` go
    through it at once where that is fixed, and CDE reads ``context`` documents. ``warm`` steps come before ``timed``
    ones, of which there are fewer, but three, if those of a setting take longer than ``seconds``. ``compiles`` says
    whether to measure ``torch.compile``, which takes minutes on a CPU.

    ``mini`` trains for ``steps`` batches of ``pairs`` texts of at most ``cut`` tokens. XTR scores queries and documents
    of ``token_lengths`` in batches from ``least`` to ``most``, ``repeats`` times; a query's token retrieves ``k``.
    """

    matrix: int
    products: tuple[tuple[int, int, int], ...]
    launches: int
    copied: int
    base: Shape
    usual: tuple[int, int]
    few: tuple[int, int]
    long: tuple[int, int]
    chunk_tokens: int
    context: int
    warm: int
    timed: int
    seconds: float
    compiles: bool
    mini: Shape
    steps: int
    pairs: int
    cut: int
    token_lengths: tuple[int, int]
    k: int
    least: int
    most: int
    repeats: int


FULL = Form(
    matrix=8192,
    products=((32_768, 768, 768), (32_768, 768, 3072)),
    launches=500,
    copied=2**31,
    base=Shape(layers=12, width=768, heads=12, inner=3072),
    usual=(128, 1024),
    few=(128, 256),
    long=(512, 256),
    chunk_tokens=2**15,
    context=512,
    warm=3,
    timed=10,
    seconds=25,
    compiles=True,
    mini=Shape(layers=6, width=384, heads=12, inner=1536),
    steps=10,
    pairs=512,
    cut=64,
    token_lengths=(32, 128),
    k=1024,
    least=256,
    most=4096,
    repeats=3,
)
SMALL = Form(
    matrix=64,
    products=((96, 32, 32), (96, 32, 64)),
    launches=5,
    copied=2**10,
    base=Shape(layers=2, width=32, heads=2, inner=64),
    usual=(8, 8),
    few=(8, 4),
    long=(12, 4),
    chunk_tokens=48,
    context=4,
    warm=1,
    timed=2,
    seconds=9,
    compiles=False,
    mini=Shape(layers=1, width=32, heads=2, inner=64),
    steps=3,
    pairs=8,
    cut=8,
    token_lengths=(4, 6),
    k=8,
    least=8,
    most=16,
    repeats=1,
)


def write_shards(folder: Path, batches: int, size: int, cut: int, drawn: Lengths | None = None) -> Path:
    """Write batches of ``size`` pairs of texts of ``cut`` tokens each, or of ``drawn`` lengths up to it.

    [CLS] and [SEP] count. Half of a document's words are its query's, as far as that goes. Returns ``folder``.
    """
    rng = np.random.default_rng(0)
    words = rng.integers(WORDS, size=(batches, size, 2, cut - 2))
    words[:, :, 1, ::2] = words[:, :, 0, ::2]
    lengths = drawn.draw(rng, batches * size, cut) if drawn else np.full((batches * size, 2), cut)
    kept = (lengths - 2).reshape(batches, size, 2).tolist()
    batches_of_words = [
        make_batch([_pair(pair, own) for pair, own in zip(pairs, each, strict=True)])
        for pairs, each in zip(words.tolist(), kept, strict=True)
    ]
    write_batches(folder, batches_of_words, epochs=1)
    return folder


def _pair(words: list[list[int]], kept: list[int]) -> dict[str, object]:
    query, document = (" ".join(f"w{word}" for word in side[:n]) for side, n in zip(words, kept, strict=True))
    texts = {"id": content_id(query, document), "query": query, "document": document}
    return {**texts, "domain": "words", "negatives": [], "cluster": 0}


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
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)
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
        write_start(start, form.base, max(form.usual, form.long)[0], [" ".join(f"w{word}" for word in range(WORDS))])
    return start
