"""The two-stage encoder as a sentence-transformers module.

This file is saved with models, so it must not import this project; what it imports of ours is saved next to it.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import InputModule, Transformer
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .attention import reading, remember
from .context import Context, draw
from .folder import locate, read, write
from .prefixes import pooled_tokens
from .sequence import read_behind

Form = Literal["gated", "sequence", "prompted"]
BATCH = 64
ADDED = "added"
"""The name under which layers of ``second`` may give what is added to the text's embedding."""


class ContextualEncoder(InputModule):
    """Text embeddings that depend on the corpus (*Contextual Document Embeddings*, section 4.2).

    ``first`` embeds each context document as one vector. ``second`` embeds texts, and reads the context vectors in one
    of three forms. ``gated``: each of its layers also attends to them, through a gate per head; while a gate is 0, and
    without a context, a text's embedding is that of ``second`` alone. ``sequence``, the paper's: they stand before the
    text, whose tokens alone are pooled; a learned ``null`` vector stands for each document that is missing to J.
    ``prompted``, that of the models which its authors published: learned ``prompts`` stand between them and the text.
    Any number of documents can be read, and their order does not matter, unless they are ``prompted`` without a
    ``distance``. ``first`` may be ``second`` itself: both stages then share their weights.

    Call ``fit_context`` with a corpus before encoding; ``save`` also saves the documents drawn from it.
    """

    save_in_root = True
    config_file_name = "contextual_encoder.json"
    config_keys = ["documents", "unpooled_prefixes", "shared", "form"]

    def __init__(
        self,
        first: SentenceTransformer,
        second: SentenceTransformer,
        *,
        documents: int,
        unpooled_prefixes: Sequence[str] = (),
        form: Form = "gated",
        bias: float | None = None,
        prompts: Tensor | None = None,
        distance: int | None = None,
    ) -> None:
        """Combine two models; gates are shut at first.

        ``documents`` is J, how many documents ``fit_context`` draws. ``unpooled_prefixes``: if a text begins with one
        of these, the prefix's tokens are left out of the pooling. ``bias`` is where a learned bias of the scores of a
        sequence's context begins, beside -log of the number of its vectors; None: they have none. ``prompts`` are those
        ``(p, h)`` of ``prompted``, and ``distance`` is by how many positions all context vectors stand before a text;
        None: they stand one after another.

        Raises:
            ValueError: ``second`` cannot read a context, or its width is not that of ``first``'s vectors.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        if not isinstance(second[0], Transformer):
            raise ValueError(f"begins with {type(second[0]).__name__}; CDE needs a transformer encoder")
        backbone = cast(PreTrainedModel, second[0].model)
        width = backbone.config.hidden_size
        if first.get_embedding_dimension() != width:
            raise ValueError(
                f"the first stage's vectors have {first.get_embedding_dimension()} numbers, but the second stage reads "
                f"{width}; use a first stage without a layer that changes the width"
            )
        with torch.no_grad():
            layers, _, heads, *_ = remember(backbone, torch.zeros(1, width)).shape
        self.heads = layers, heads
        self.first, self.second, self.tokenizer = first, second, second[0].tokenizer
        self.documents, self.unpooled_prefixes = documents, list(unpooled_prefixes)
        self.form, self.distance = form, distance
        if form == "gated":
            self.gate = nn.Parameter(torch.zeros(layers, backbone.config.num_attention_heads))
        elif form == "prompted":
            self.config_keys = [*self.config_keys, "distance"]
            self.prompts = nn.Parameter(torch.empty(0, width) if prompts is None else prompts)
        else:
            mean = cast(nn.Embedding, backbone.get_input_embeddings()).weight.detach().mean(dim=0)
            self.null = nn.Parameter(functional.normalize(mean, dim=0))
            flat = None if bias is None else torch.full((layers * heads,), float(bias))  # so that it does not decay
            self.register_parameter("bias", None if flat is None else nn.Parameter(flat))
        self.context: Context | None = None
        self._prompt = ""

    @property
    def backbone(self) -> PreTrainedModel:
        """The encoder inside ``second``."""
        return cast(PreTrainedModel, self.second[0].model)

    def new_parameters(self) -> list[nn.Parameter]:
        """What the form of context adds to the two stages."""
        return list(self.parameters(recurse=False))

    @property
    def shared(self) -> bool:
        """Whether one encoder is both stages."""
        return self.first is self.second

    @property
    def before(self) -> int:
        """How many vectors stand before a text's tokens."""
        if self.form == "gated":
            return 0
        return self.documents + (len(self.prompts) if self.form == "prompted" else 0)

    @property
    def max_seq_length(self) -> int:
        """Maximum number of tokens per text, in both stages."""
        return int(self.second.max_seq_length or 0)

    @max_seq_length.setter
    def max_seq_length(self, length: int) -> None:
        self.first.max_seq_length = self.second.max_seq_length = length

    def on_model_ready(self, model: Any) -> None:
        """Adopt the model's document prompt, which stage 1 uses as well."""
        self._prompt = model.prompts.get("document") or ""

    def get_embedding_dimension(self) -> int:
        """Width of the embeddings."""
        return int(self.second.get_embedding_dimension() or 0)

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **options: Any) -> dict[str, Any]:
        """Turn texts into inputs of ``second``, and mark the tokens to pool if some are left out."""
        features: dict[str, Any] = self.second.preprocess(list(inputs), prompt=prompt, **options)
        if self.unpooled_prefixes:
            texts = [(prompt or "") + text for text in inputs]
            length = getattr(self.second[0], f"{options.get('task')}_length", None) or self.max_seq_length
            tokenizer = cast(PreTrainedTokenizerBase, self.tokenizer)
            features["pooled"] = pooled_tokens(
                tokenizer, texts, self.unpooled_prefixes, features["attention_mask"], length
            )
        return features

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add ``sentence_embedding`` ``(n, h)``.

        The context is what ``prepare`` returned, if ``features`` has the key ``context``, else the fitted one.
        """
        features = dict(features)  # it may be read again, with other dropout
        prepared = features.pop("context") if "context" in features else self._fitted()
        if prepared is None and self.before:
            prepared = self.prepare(self.new_parameters()[0].new_empty(0, self.backbone.config.hidden_size))
        pooled = features.pop("pooled", None)
        encoder, *rest = self.second
        if prepared is None:
            features = encoder(features)
        elif self.form == "gated":
            with reading(self.backbone, prepared, self.gate):
                features = encoder(features)
        else:
            features["token_embeddings"] = read_behind(self.backbone, features, prepared, **self._rows(len(prepared)))
        if pooled is not None:
            features["attention_mask"] = pooled
        for module in rest:
            features = module(features)
        if ADDED in features:
            features["sentence_embedding"] = features["sentence_embedding"] + features.pop(ADDED)
        return features

    def read_context(self, texts: list[str]) -> dict[str, Any]:
        """Turn context documents into inputs of ``first``."""
        features: dict[str, Any] = self.first.preprocess(texts, task="document")
        return features

    def embed_context(self, features: dict[str, Any]) -> Tensor:
        """Stage 1: context vectors ``(n, h)`` of inputs of ``first``."""
        device = self.backbone.device
        placed = {key: each.to(device) if isinstance(each, Tensor) else each for key, each in features.items()}
        vectors: Tensor = self.first(placed)["sentence_embedding"]
        return vectors

    def prepare(self, vectors: Tensor, null: Tensor | None = None) -> Tensor:
        """What stage 2 reads of context vectors ``(j, h)``; all texts share it.

        Keys and values ``(layers, 2, heads, j, e)`` or, for a sequence, rows ``(j, h)`` and, if j is below J, a null
        vector for all that are missing; another takes the place of each vector that ``null`` ``(j,)`` marks. Vectors
        take the mean length of a token's, whatever length ``first`` gives them; those before prompts keep theirs.
        """
        if self.form == "prompted":
            return torch.cat([vectors, self.prompts])
        if self.form == "sequence":
            vectors = vectors if null is None else torch.where(null[:, None], self.null, vectors)
            vectors = torch.cat([vectors, self.null[None]]) if len(vectors) < self.documents else vectors
        length = cast(nn.Embedding, self.backbone.get_input_embeddings()).weight.detach().norm(dim=1).mean()
        rows = functional.normalize(vectors, dim=-1) * length
        return remember(self.backbone, rows) if self.form == "gated" else rows

    def _rows(self, count: int) -> dict[str, Tensor]:
        """How the ``count`` vectors before a text are read; see ``read_behind``."""
        if self.form == "sequence":
            return {"offset": self._offset(count)}
        positions = torch.arange(-count, 0, device=self.backbone.device)
        if self.distance is not None:
            positions[: count - len(self.prompts)] = -self.distance
        return {"positions": positions}

    def _offset(self, rows: int) -> Tensor:
        """What is added to the scores ``(layers, heads, rows)`` of a sequence's rows: the bias, and their numbers.

        As many copies of the last row as are missing to J would have the same effect.
        """
        copies = max(self.documents - rows, 0) + 1
        added = self.null.new_zeros(*self.heads, rows)
        added[..., -1] = math.log(copies)
        return added if self.bias is None else added + self.bias.view(*self.heads, 1) - math.log(rows + copies - 1)

    def fit_context(
        self, corpus: Sequence[str], seed: int = 42, prompt: str | None = None, size: int | None = None
    ) -> None:
        """Use documents drawn from ``corpus`` as the context from now on; see ``draw_context``."""
        drawn = self.draw_context(corpus, seed, prompt, size)
        if self.context is None or self.context.texts != drawn.texts:
            self.context = drawn

    def draw_context(
        self, corpus: Sequence[str], seed: int = 42, prompt: str | None = None, size: int | None = None
    ) -> Context:
        """Draw ``size`` documents, by default J, with ``draw``; ``prompt`` is by default the document prompt.

        Raises:
            ValueError: the corpus is empty.
        """
        count = self.documents if size is None else size
        return draw(corpus, count, seed, self._prompt if prompt is None else prompt)

    def clear_context(self) -> None:
        """Discard the fitted context; texts are then embedded without one."""
        self.context = None

    def _fitted(self) -> Tensor | None:
        """The fitted context, prepared; kept until a weight changes or moves."""
        if self.context is None or not self.context.texts:
            return None
        if self.training or torch.is_grad_enabled():
            return self._read_context(self.context.texts)
        weights = [(each.data_ptr(), each._version) for each in self.parameters()]
        if self.context.weights != weights:
            self.context.prepared, self.context.weights = self._read_context(self.context.texts), weights
        return self.context.prepared

    def _read_context(self, texts: list[str]) -> Tensor:
        chunks = (texts[start : start + BATCH] for start in range(0, len(texts), BATCH))
        return self.prepare(torch.cat([self.embed_context(self.read_context(chunk)) for chunk in chunks]))

    def save(self, output_path: str, *_: Any, safe_serialization: bool = True, **__: Any) -> None:
        """Write both stages, once if they are one, what is new, and the fitted context's documents, if any."""
        self.save_config(output_path)
        new = {name: each.detach().contiguous() for name, each in self.named_parameters(recurse=False)}
        stages = {"second": self.second} if self.shared else {"first": self.first, "second": self.second}
        write(Path(output_path), stages, new, self.context, safe_serialization=safe_serialization)

    @classmethod
    def load(cls, model_name_or_path: str, *_: Any, **kwargs: Any) -> "ContextualEncoder":
        """Load what ``save`` wrote, from a folder or from the hub.

        Raises:
            ValueError: the folder was written before contexts had gates.
        """
        saved = read(locate(model_name_or_path, kwargs), cls.config_file_name)
        bias = 0 if "bias" in saved.new else None
        model = cls(*saved.stages, **saved.config, bias=bias, prompts=saved.new.get("prompts"))
        for name, each in model.named_parameters(recurse=False):
            each.data = saved.new[name]
        model.context = saved.context
        return model
