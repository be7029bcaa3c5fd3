"""The two-stage encoder as a sentence-transformers module.

This file is saved with models, so it must not import this project; ``backbones`` is saved next to it.
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
    """Text embeddings that depend on the corpus (*Contextual Document Embeddings*, section 4.2).

    ``first`` embeds each of up to ``documents`` (J) context documents as one vector. ``second`` reads those J vectors,
    then the text's tokens; the embedding is the mean over the text's tokens. A learned null vector replaces each
    missing context vector, or all J without a context. The order of context documents does not matter.

    Call ``fit_context`` with a corpus before encoding; ``save`` also saves the fitted context.
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
        """Combine two backbones.

        ``unpooled_prefixes``: if a text begins with one of these, the prefix's tokens are left out of the mean.
        ``context_reads_text``: whether context vectors attend to the text; if not, they are prepared once for all
        texts.

        Raises:
            ValueError: ``second`` does not accept input vectors, or the backbones differ in width.
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
        """Adopt the model's document prompt, which stage 1 uses as well."""
        self._prompt = model.prompts.get("document") or ""

    def train(self, mode: bool = True) -> "ContextualEncoder":
        """Set the training mode; the prepared context is discarded, because weights may change."""
        self._prepared = None
        return super().train(mode)

    def get_embedding_dimension(self) -> int:
        """Width of the embeddings."""
        return int(self.null.shape[0])

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **_: Any) -> dict[str, Any]:
        """Tokenize texts: token ids ``(n, l)``, and which tokens are present (not padding) and pooled, ``(n, l)``."""
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
            pooled &= begun | ~begun.any(dim=1, keepdim=True)  # a text that is only a prefix: pool the prefix
        return {"input_ids": found["input_ids"], "attention_mask": present, "pooled": pooled}

    def _prefix_length(self, text: str) -> int:
        return max((len(prefix) for prefix in self.unpooled_prefixes if text.startswith(prefix)), default=0)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add ``sentence_embedding`` ``(n, h)``, computed with the fitted context."""
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
        """Prepare context vectors ``(j, h)``, j <= J, for stage 2; all texts share the result. None is no context.

        Returns the vectors themselves, ``(J, h)``, or each layer's keys and values if the context does not read the
        text. Null vectors pad the context to J and replace the vectors that ``null`` ``(j,)`` bool selects (sequence
        dropout).

        Raises:
            ValueError: the context vectors have another width, or there are more than J.
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
        """Stage 2: embeddings ``(n, h)``, with a context from ``prepare``."""
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
        """Run stage 1 on documents drawn from ``corpus`` and use them as the context from now on.

        Draws ``size`` documents, by default and at most J, as mteb's wrapper does for the published models: without
        replacement, or with replacement if the corpus is smaller. ``prompt`` is put before each; the default is the
        model's document prompt. Does nothing if the same documents are already fitted.

        Raises:
            ValueError: the corpus is empty.
        """
        if not len(corpus):
            raise ValueError("fit_context: the corpus is empty; pass documents, or do not call it to encode without")
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
        """Discard the fitted context; texts are then embedded without one."""
        self.fitted, self._prepared, self._fitted_to = None, None, ""

    def save(self, output_path: str, *_: Any, safe_serialization: bool = True, **__: Any) -> None:
        """Write both stages, the null vector and the fitted context, if any."""
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
        """Load what ``save`` wrote, from a folder or from the hub."""
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
        """Load the context that ``save`` wrote.

        Raises:
            ValueError: the context's width or number of vectors does not fit this model.
        """
        with safe_open(file, framework="pt") as opened:
            self._fitted_to = (opened.metadata() or {}).get("drawn", "")
            context = opened.get_tensor("context").to(self.null.device)
        self.prepare(context)
        self.fitted, self._prepared = context, None


def _load_backbone(folder: Path) -> PreTrainedModel:
    kind = AutoConfig.from_pretrained(folder).model_type
    # AutoModel would load T5 with its decoder.
    loader = AutoModelForTextEncoding if kind in {"t5", "mt5"} else AutoModel
    backbone: PreTrainedModel = loader.from_pretrained(folder)
    return backbone


def _mean(states: Tensor, counted: Tensor) -> Tensor:
    """Mean ``(n, h)`` of ``states`` ``(n, l, h)`` over the positions that ``counted`` ``(n, l)`` selects."""
    weights = counted.to(states.dtype)[:, :, None]
    return (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
