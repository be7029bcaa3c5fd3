"""The two-stage encoder as a module of sentence-transformers.

This file travels with saved models, so it imports nothing of this project but its neighbour.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from huggingface_hub import snapshot_download
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from sentence_transformers.base.modules import InputModule
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForTextEncoding,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from .backbones import check_backbone, hidden_states, hidden_states_with, remember

CONTEXT = "context.safetensors"
BATCH = 64


class ContextualEncoder(InputModule):
    """*Contextual Document Embeddings*, section 4.2: text vectors that know the corpus around them.

    ``first`` gives each of up to ``documents`` (J) context documents one vector. ``second`` reads those J vectors and
    then the text's tokens; the mean over the text's tokens is the embedding. Where there are fewer than J, a learned
    null vector stands in; with none, all are null. The order of context documents means nothing.

    Call ``fit_context`` with a corpus before encoding; ``save`` keeps what was fitted.
    """

    tokenizer: PreTrainedTokenizerBase
    save_in_root = True
    config_file_name = "contextual_encoder.json"
    config_keys = ["documents", "max_seq_length", "unpooled_prefixes", "context_reads_text"]

    def __init__(
        self,
        first: PreTrainedModel,
        second: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        documents: int,
        max_seq_length: int,
        unpooled_prefixes: Sequence[str] = (),
        context_reads_text: bool = True,
    ) -> None:
        """``unpooled_prefixes``: where a text begins with one of these, its tokens stay out of the mean.

        Raises:
            ValueError: a backbone that cannot read vectors, or widths that differ.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        check_backbone(second)
        width = second.config.hidden_size
        if first.config.hidden_size != width:
            raise ValueError(f"the stages' widths differ: {first.config.hidden_size} and {width}; they must be equal")
        self.first, self.second, self.tokenizer = first, second, tokenizer
        self.documents, self.max_seq_length = documents, max_seq_length
        self.unpooled_prefixes, self.context_reads_text = list(unpooled_prefixes), context_reads_text
        self.null = nn.Parameter(torch.zeros(width))
        self.fitted: Tensor | None
        self.register_buffer("fitted", None, persistent=False)
        self._fitted_to = ""
        self._prepared: Tensor | None
        self.register_buffer("_prepared", None, persistent=False)
        self._prompt = ""

    def on_model_ready(self, model: Any) -> None:
        """Take over the model's prompt for documents, which stage 1 reads as well."""
        self._prompt = model.prompts.get("document") or ""

    def train(self, mode: bool = True) -> "ContextualEncoder":
        """As every module; weights may change, so what was prepared by the present ones is forgotten."""
        self._prepared = None
        return super().train(mode)

    def get_embedding_dimension(self) -> int:
        """Width of the embeddings."""
        return int(self.null.shape[0])

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **_: Any) -> dict[str, Any]:
        """Token ids ``(n, l)``, what is no padding, and what is pooled."""
        texts = [(prompt or "") + text for text in inputs]
        found = self.tokenizer(
            texts, padding=True, truncation=True, max_length=self.max_seq_length, return_tensors="pt",
            return_offsets_mapping=bool(self.unpooled_prefixes),
        )  # fmt: skip
        present = found["attention_mask"].bool()
        pooled = present.clone()
        if self.unpooled_prefixes:
            lengths = torch.tensor([self._prefix_length(text) for text in texts])
            text_tokens = found["offset_mapping"][:, :, 1] > lengths[:, None]
            begun = (text_tokens.cumsum(dim=1) > 0) | (lengths == 0)[:, None]
            pooled &= begun | ~begun.any(dim=1, keepdim=True)  # a prefix without a text: pool the prefix
        return {"input_ids": found["input_ids"], "attention_mask": present, "pooled": pooled}

    def _prefix_length(self, text: str) -> int:
        return max((len(prefix) for prefix in self.unpooled_prefixes if text.startswith(prefix)), default=0)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add ``sentence_embedding`` ``(n, h)``, in the light of the fitted context."""
        prepared = self.prepare(self.fitted) if self._prepared is None else self._prepared
        if not self.training and not torch.is_grad_enabled():
            self._prepared = prepared
        features["sentence_embedding"] = self.read(features, prepared)
        return features

    def embed_context(self, features: dict[str, Any]) -> Tensor:
        """Stage 1: context vectors ``(n, h)``."""
        ids, present = (features[key].to(self.null.device) for key in ("input_ids", "attention_mask"))
        states = self.first(input_ids=ids, attention_mask=present.long()).last_hidden_state
        return _mean(states, present)

    def prepare(self, context: Tensor | None, null: Tensor | None = None) -> Tensor:
        """What stage 2 needs of context vectors ``(j, h)``, j at most J, the same for all texts; None is no context.

        The vectors themselves, ``(J, h)``, or, where the context does not read the text, each layer's keys and values.
        Null vectors fill up and, where ``null`` ``(j,)`` bool says so (sequence dropout), replace.

        Raises:
            ValueError: context vectors of another width, or more than J.
        """
        given = self.null.new_empty(0, len(self.null)) if context is None else context
        if given.ndim != 2 or given.shape[1] != len(self.null) or len(given) > self.documents:
            raise ValueError(
                f"context of shape {tuple(given.shape)}: this model takes at most {self.documents} vectors "
                f"of width {len(self.null)}"
            )
        if null is not None:
            given = torch.where(null[:, None], self.null, given)
        rows = torch.cat([given, self.null.expand(self.documents - len(given), -1)])
        return rows if self.context_reads_text or not self.documents else remember(self.second, rows)

    def read(self, features: dict[str, Any], prepared: Tensor) -> Tensor:
        """Stage 2: embeddings ``(n, h)`` in the light of what ``prepare`` made of a context."""
        ids, present, pooled = (features[key].to(self.null.device) for key in ("input_ids", "attention_mask", "pooled"))
        tokens = self.second.get_input_embeddings()(ids)
        if prepared.ndim == 5:
            return _mean(hidden_states_with(self.second, prepared, tokens, present), pooled)
        rows = torch.cat([prepared.expand(len(ids), -1, -1), tokens], dim=1)
        attended = torch.cat([present.new_ones(rows.shape[0], self.documents), present], dim=1)
        return _mean(hidden_states(self.second, rows, attended, self.documents)[:, self.documents :], pooled)

    @torch.no_grad()
    def fit_context(
        self, corpus: Sequence[str], seed: int = 42, prompt: str | None = None, size: int | None = None
    ) -> None:
        """Run stage 1 on documents drawn from ``corpus``; from now on texts are embedded in their light.

        Drawn as mteb's wrapper draws for the published models: J of them unless ``size`` says fewer, without
        replacement, or with it where the corpus has fewer. ``prompt`` is put before them, the model's own for
        documents unless given. A second call with what was drawn before does nothing.

        Raises:
            ValueError: the corpus is empty.
        """
        if not len(corpus):
            raise ValueError("fit_context: the corpus is empty; give it documents, or leave it out to encode without")
        count = self.documents if size is None else min(size, self.documents)
        chosen = np.random.default_rng(seed).choice(len(corpus), count, replace=len(corpus) < count)
        texts = [(self._prompt if prompt is None else prompt) + corpus[row] for row in chosen.tolist()]
        key = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
        if key == self._fitted_to:
            return
        training = self.training
        self.eval()
        chunks = [self.preprocess(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        vectors = [self.embed_context(chunk) for chunk in chunks]
        self.fitted, self._prepared, self._fitted_to = torch.cat(vectors) if vectors else None, None, key
        self.train(training)

    def clear_context(self) -> None:
        """Forget the fitted context: texts are embedded without one."""
        self.fitted, self._prepared, self._fitted_to = None, None, ""

    def save(self, output_path: str, *_: Any, safe_serialization: bool = True, **__: Any) -> None:
        """Write both stages, the null vector and, if there is one, the fitted context."""
        folder = Path(output_path)
        for name, backbone in (("first", self.first), ("second", self.second)):
            backbone.save_pretrained(folder / name, safe_serialization=safe_serialization)
        self.tokenizer.save_pretrained(str(folder))
        self.save_config(output_path)
        save_file({"null": self.null.detach().contiguous()}, folder / "null.safetensors")
        (folder / CONTEXT).unlink(missing_ok=True)
        if self.fitted is not None:
            facts = {"drawn": self._fitted_to}
            save_file({"context": self.fitted.detach().contiguous()}, folder / CONTEXT, metadata=facts)

    @classmethod
    def load(cls, model_name_or_path: str, *_: Any, **kwargs: Any) -> "ContextualEncoder":
        """Load what ``save`` wrote, from a folder or from a hub."""
        folder = Path(model_name_or_path)
        if not folder.is_dir():
            taken = ("token", "revision", "local_files_only")
            where = {key: kwargs[key] for key in taken if kwargs.get(key) is not None}
            folder = Path(snapshot_download(model_name_or_path, cache_dir=kwargs.get("cache_folder"), **where))
        model = cls(
            _load_backbone(folder / "first"),
            _load_backbone(folder / "second"),
            AutoTokenizer.from_pretrained(folder),
            **json.loads((folder / cls.config_file_name).read_text(encoding="utf-8")),
        )
        model.null.data = load_file(folder / "null.safetensors")["null"]
        if (folder / CONTEXT).exists():
            model.load_context(folder / CONTEXT)
        return model

    def load_context(self, file: Path) -> None:
        """Take the context that ``save`` left beside a model or an index.

        Raises:
            ValueError: it is another model's: its width or number of vectors does not fit.
        """
        with safe_open(file, framework="pt") as opened:
            self._fitted_to = (opened.metadata() or {}).get("drawn", "")
            context = opened.get_tensor("context").to(self.null.device)
        self.prepare(context)
        self.fitted, self._prepared = context, None


def _load_backbone(folder: Path) -> PreTrainedModel:
    kind = AutoConfig.from_pretrained(folder).model_type
    # Of T5 the plain class is encoder and decoder.
    loader = AutoModelForTextEncoding if kind in {"t5", "mt5"} else AutoModel
    backbone: PreTrainedModel = loader.from_pretrained(folder)
    return backbone


def _mean(states: Tensor, counted: Tensor) -> Tensor:
    """Means ``(n, h)`` of the ``counted`` ``(n, l)`` of ``states`` ``(n, l, h)``."""
    weights = counted.to(states.dtype)[:, :, None]
    return (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
