"""Randomly initialised models of the architectures that users name, small enough to run in milliseconds."""

import os
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertModel,
    NomicBertConfig,
    NomicBertModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5EncoderModel,
    T5Tokenizer,
)

from tests.helpers import TOPICS, WORDS

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PREFIXES = ["search_query:", "search_document:", "classification:"]
LETTERS = [prefix + letter for letter in "abcdefghijklmnopqrstuvwxyz0123456789_:" for prefix in ("", "##")]
VOCABULARY = {token: number for number, token in enumerate([*SPECIAL, *PREFIXES, *WORDS, *TOPICS, *LETTERS])}
WIDTH = 16


def save_bert(folder: Path) -> Path:
    """BERT with mean pooling, as all-MiniLM-L6-v2 is built."""
    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    torch.manual_seed(0)
    return _save(folder, BertModel(config), word_pieces())


def save_roberta(folder: Path) -> Path:
    """RoBERTa with mean pooling, which reads 32 tokens: it counts positions from its padding index, 1."""
    config = RobertaConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=34,
    )
    torch.manual_seed(0)
    return _save(folder, RobertaModel(config), word_pieces())


def save_nomic(folder: Path) -> Path:
    """nomic-bert with mean pooling, as nomic-embed-text-v1 is built."""
    config = NomicBertConfig(
        vocab_size=len(VOCABULARY), hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    torch.manual_seed(0)
    return _save(folder, NomicBertModel(config), word_pieces())


def save_t5(folder: Path) -> Path:
    """T5 encoder with mean pooling, a dense layer and normalisation, as gtr-t5-base is built."""
    pieces = [(piece, 0.0) for piece in ("<pad>", "</s>", "<unk>")]
    pieces += [(f"▁{word}", -5.0) for word in [*WORDS, *TOPICS]] + [(letter, -9.0) for letter in ["▁", *LETTERS[::2]]]
    tokenizer = T5Tokenizer(vocab=pieces, extra_ids=0)
    config = T5Config(vocab_size=len(tokenizer), d_model=WIDTH, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
    torch.manual_seed(0)
    dense = Dense(WIDTH, WIDTH, bias=False, activation_function=torch.nn.Identity())
    return _save(folder, T5EncoderModel(config), tokenizer, dense, Normalize())


def put_on_hub(model: Path, name: str) -> None:
    """Lay a model's folder into the local cache as a download from the hub would, under ``ORG/NAME``."""
    cached = Path(os.environ["HF_HOME"]) / "hub" / f"models--{name.replace('/', '--')}"
    revision = "0123456789abcdef0123456789abcdef01234567"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text(revision)
    (cached / "snapshots").mkdir()
    model.rename(cached / "snapshots" / revision)


def word_pieces() -> PreTrainedTokenizerFast:
    """Lower-case WordPiece over the corpora's words, other words letter by letter."""
    tokenizer = Tokenizer(models.WordPiece(VOCABULARY, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


def _save(folder: Path, backbone: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, *more: torch.nn.Module) -> Path:
    backbone.save_pretrained(folder / "backbone")
    tokenizer.save_pretrained(folder / "backbone")
    modules = [Transformer(str(folder / "backbone")), Pooling(WIDTH, pooling_mode="mean"), *more]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "model"), create_model_card=False)
    return folder / "model"
