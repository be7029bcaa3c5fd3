"""The models that the paper's authors published, cde-small-v1 and cde-small-v2, as two-stage encoders of ours.

None of the code in their folders is run: their tensors become weights of modules that we have. What they mean is known
from github.com/jxmorris12/cde (October 2024 for the first, January 2025 for the second) and from the models' cards.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn
from transformers import (
    ModernBertConfig,
    ModernBertModel,
    NomicBertConfig,
    NomicBertModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from batchwright.core.errors import InputError
from batchwright.formats.models import check_tokenizer
from batchwright.retrievers.cde.contextual_encoder import ADDED, ContextualEncoder

CONFIG, WEIGHTS = "config.json", "model.safetensors"
_FIRST, _SECOND = "first_stage_model.", "second_stage_model."
_HEAD = 64
"""Width of an attention head, of both backbones."""


class Backbone(NamedTuple):
    """A kind of encoder, and two of its tensors: that of the tokens, and one that tells how wide its layers are inside.

    ``residual``: a text's embedding is the mean over its tokens, plus what the last layers make of it.
    """

    model: type[PreTrainedModel]
    config: type[NomicBertConfig | ModernBertConfig]
    words: str
    inner: str
    residual: bool


_BACKBONES = {
    "nomic-ai/nomic-bert-2048": Backbone(
        NomicBertModel,
        NomicBertConfig,
        "embeddings.word_embeddings.weight",
        "encoder.layers.0.mlp.fc2.weight",
        residual=False,
    ),
    "answerdotai/ModernBERT-base": Backbone(
        ModernBertModel,
        ModernBertConfig,
        "embeddings.tok_embeddings.weight",
        "layers.0.mlp.Wo.weight",
        residual=True,
    ),
}
_ASSUMED = {
    "autoregressive_backbone": False,
    "pool_ignore_contextual_tokens": True,
    "pooling_strategy": "mean",
    "transductive_tokens_per_document": 1,
}
"""What their ``config.json`` may say, and the value that is read here."""


def read_released(what: str, folder: Path, prefixes: Sequence[str]) -> ContextualEncoder:
    """Read the folder of one; ``prefixes`` are those of texts, which one of the models leaves out of its pooling.

    Raises:
        InputError: a tensor is missing, has another shape, or is not known, or ``config.json`` asks for another model.
    """
    config = json.loads((folder / CONFIG).read_bytes())
    backbone = _backbone(what, config)
    tensors = _Tensors(what, load_file(folder / WEIGHTS))
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    encoders = [tensors.encoder(backbone, start, tokenizer) for start in (f"{_FIRST}embedder.", f"{_SECOND}backbone.")]
    width, documents = encoders[0].config.hidden_size, int(config["transductive_corpus_size"])
    layers = [tensors.dense(f"{_FIRST}mlp.0", width, nn.GELU()), tensors.dense(f"{_FIRST}mlp.2", width)]
    after = [
        tensors.dense(f"{_SECOND}output_projection.0", width, nn.ReLU(), writes="hidden"),
        tensors.dense(
            f"{_SECOND}output_projection.2",
            width,
            reads="hidden",
            writes=ADDED if backbone.residual else "sentence_embedding",
        ),
    ]
    prompts = _prompts(tensors, width)
    tensors.check_all_used()
    _fold_embeddings(encoders[1])
    length = int(config.get("max_seq_length") or 512)
    first, second = (
        _stage(encoder, tokenizer, length, more) for encoder, more in zip(encoders, (layers, after), strict=True)
    )
    apart = backbone.model is NomicBertModel and config.get("disable_transductive_rotary_embedding") is not False
    return ContextualEncoder(
        first,
        second,
        documents=documents,
        unpooled_prefixes=prefixes if config.get("pool_ignore_instruction_tokens") else (),
        form="prompted",
        prompts=prompts,
        distance=documents + len(prompts) if apart else None,
    )


def _backbone(what: str, config: Mapping[str, Any]) -> Backbone:
    for name, read in _ASSUMED.items():
        if (found := config.get(name)) not in (None, read):
            raise InputError(f"{what}: {name} is {found!r} in its {CONFIG}; only models with {read!r} can be read")
    names = {str(config[key]) for key in ("embedder", "dataset_backbone") if config.get(key)}
    if len(names) != 1 or not names <= _BACKBONES.keys():
        raise InputError(
            f"{what}: its stages are {', '.join(sorted(names)) or 'not named'} (embedder and dataset_backbone in its "
            f"{CONFIG}); only models of {' or '.join(_BACKBONES)} can be read"
        )
    return _BACKBONES[names.pop()]


class _Tensors:
    """The tensors of a model, by their names there; each is used once."""

    def __init__(self, what: str, found: dict[str, Tensor]) -> None:
        self._what, self._left = what, {name: each.float() for name, each in found.items()}

    def take(self, name: str, *shape: int) -> Tensor:
        """The tensor ``name``, which must have this shape."""
        if name not in self._left:
            raise InputError(f"{self._what}: {WEIGHTS} has no tensor '{name}'; fetch it again")
        found = self._left.pop(name)
        if found.shape != shape:
            raise InputError(
                f"{self._what}: tensor '{name}' in {WEIGHTS} has the shape {tuple(found.shape)}, and needs {shape}; "
                "fetch it again"
            )
        return found

    def dense(
        self,
        name: str,
        width: int,
        activation: nn.Module | None = None,
        reads: str = "sentence_embedding",
        writes: str = "sentence_embedding",
    ) -> Dense:
        """A layer that changes vectors of ``width`` numbers."""
        weight, bias = self.take(f"{name}.weight", width, width), self.take(f"{name}.bias", width)
        return Dense(
            width,
            width,
            activation_function=activation or nn.Identity(),
            init_weight=weight,
            init_bias=bias,
            module_input_name=reads,
            module_output_name=writes,
        )

    def encoder(self, backbone: Backbone, start: str, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
        """The encoder whose tensors' names begin with ``start``; its shape is theirs."""
        names = [name for name in self._left if name.startswith(start)]
        own = {name.removeprefix(start): self._left.pop(name) for name in names}
        for name in (backbone.words, backbone.inner):
            if name not in own or own[name].ndim != 2:
                raise InputError(f"{self._what}: {WEIGHTS} has no tensor '{start}{name}'; fetch it again")
        words, width = own[backbone.words].shape
        layers = {name.partition("layers.")[2].partition(".")[0] for name in own} - {""}
        config = backbone.config(
            vocab_size=words,
            hidden_size=width,
            num_hidden_layers=len(layers),
            num_attention_heads=max(width // _HEAD, 1),
            intermediate_size=own[backbone.inner].shape[1],
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.cls_token_id,
            eos_token_id=tokenizer.sep_token_id,
            cls_token_id=tokenizer.cls_token_id,
            sep_token_id=tokenizer.sep_token_id,
        )
        kind: Any = backbone.model
        made, found = kind.from_pretrained(
            None, config=config, state_dict=own, output_loading_info=True, ignore_mismatched_sizes=True
        )
        for key, problem in (
            ("missing_keys", "is missing"),
            ("unexpected_keys", "is not known"),
            ("mismatched_keys", "has another shape than the others need"),
        ):
            if names := sorted(name if isinstance(name, str) else name[0] for name in found[key]):
                raise InputError(f"{self._what}: tensor '{start}{names[0]}' of {WEIGHTS} {problem}; fetch it again")
        check_tokenizer(self._what, tokenizer, made)
        return cast(PreTrainedModel, made)

    def check_all_used(self) -> None:
        """Refuse tensors that nothing was made of."""
        if self._left:
            raise InputError(f"{self._what}: tensor '{min(self._left)}' of {WEIGHTS} is not known; take another model")


@torch.no_grad()
def _prompts(tensors: _Tensors, width: int) -> Tensor:
    """The prompts ``(8, width)``, which two layers made of ones."""
    start, count = f"{_SECOND}prompt_projection", 8
    hidden = tensors.take(f"{start}.0.weight", width, width).sum(dim=1) + tensors.take(f"{start}.0.bias", width)
    weight = tensors.take(f"{start}.2.weight", count * width, width)
    made: Tensor = weight @ hidden.relu() + tensors.take(f"{start}.2.bias", count * width)
    return made.view(count, width)


@torch.no_grad()
def _fold_embeddings(second: PreTrainedModel) -> None:
    """Let stage 2 do to tokens, and not to what stands before them, what it does to both, by changing its tables.

    Tokens go through the first layers of ModernBERT twice, before and after vectors are put before them. NomicBERT adds
    the vector of a text's kind, there always the first, to tokens only.
    """
    words = cast(nn.Embedding, second.get_input_embeddings()).weight
    if isinstance(second, ModernBertModel):
        words.copy_(second.embeddings.norm(words))
    else:
        kinds = second.embeddings.token_type_embeddings.weight
        words.add_(kinds[0])
        kinds.sub_(kinds[0].clone())


def _stage(
    encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, length: int, layers: Sequence[Dense]
) -> SentenceTransformer:
    with tempfile.TemporaryDirectory() as folder:
        encoder.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        module = Transformer(folder, max_seq_length=length)
    return SentenceTransformer(
        modules=[module, Pooling(encoder.config.hidden_size, pooling_mode="mean"), *layers], device="cpu"
    )
