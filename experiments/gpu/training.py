"""The arms: their start model, their batches, prepared ahead, and their steps with the project's own learners."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn
from transformers import AutoTokenizer, BertConfig, BertModel

from batchwright.core.storage import Storage
from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.training.batches import TrainBatch
from experiments.gpu.arms import Recipe
from experiments.gpu.folder import Carried
from trainers.common.job import TrainJob, training_device
from trainers.common.params import Common
from trainers.common.step_loop import build_optimiser
from trainers.common.tokenise import Tokenise
from trainers.variants import build_learner, load_variant

SEED = 17
THREADS, AHEAD = 3, 6
"""Threads that prepare batches, and how many batches are prepared."""
TOGETHER = 4096
"""Texts that are tokenised at once."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A BERT; ``inner`` is the width of its feed-forward layers, ``length`` the most tokens of a text."""

    layers: int = 6
    width: int = 384
    heads: int = 12
    inner: int = 1536
    length: int = 64


SMALL = Shape(layers=1, width=32, heads=2, inner=64, length=16)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of an arm; ``options`` are parameters of its variant, beside those of its ``recipe``.

    The first ``random_first`` of its batches are the random policy's, whichever the recipe names.
    """

    name: str
    recipe: Recipe
    common: Common
    options: dict[str, Any]
    random_first: float = 0.0


class Tokens:
    """The tokens of all texts, made once; ``ids`` ``(N, length)`` int32 are padded with 0, ``counts`` ``(N,)``."""

    def __init__(self, folder: Path, texts: Sequence[str], length: int) -> None:
        self.place = {text: number for number, text in enumerate(texts)}
        self.ids, self.counts = torch.zeros(len(texts), length, dtype=torch.int32), torch.zeros(len(texts)).long()
        tokenizer = AutoTokenizer.from_pretrained(folder).backend_tokenizer  # it tokenises with all cores
        tokenizer.enable_truncation(length)
        tokenizer.no_padding()
        for start in range(0, len(texts), TOGETHER):
            encoded = tokenizer.encode_batch_fast(list(texts[start : start + TOGETHER]))
            counts = np.array([len(each) for each in encoded])
            filled = np.arange(length) < counts[:, None]
            ids = np.zeros(filled.shape, np.int32)
            ids[filled] = np.concatenate([np.array(each.ids, np.int32) for each in encoded])
            self.ids[start : start + TOGETHER] = torch.from_numpy(ids)
            self.counts[start : start + TOGETHER] = torch.from_numpy(counts)

    def features(self, texts: Sequence[str], *_: Any, **__: Any) -> dict[str, Any]:
        """Inputs of a model, in place of a module's ``preprocess`` or a learner's ``Tokenise``."""
        return self.of(torch.tensor([self.place[text] for text in texts]))

    def of(self, numbers: Tensor) -> dict[str, Any]:
        """Inputs for the texts of these ``numbers`` ``(n,)``."""
        counts = self.counts[numbers]
        longest = int(counts.max())
        present = (torch.arange(longest, device=counts.device) < counts[:, None]).long()
        return {"input_ids": self.ids[numbers, :longest].long(), "attention_mask": present, "modality": "text"}

    def to(self, device: str) -> "Tokens":
        """The same, with the arrays on ``device``."""
        moved = object.__new__(Tokens)
        moved.place, moved.ids, moved.counts = self.place, self.ids.to(device), self.counts.to(device)
        return moved


def write_start(folder: Path, tokenizer: Path, shape: Shape) -> Path:
    """Write a BERT with random weights and mean pooling."""
    torch.manual_seed(SEED)
    config = BertConfig(
        vocab_size=len(AutoTokenizer.from_pretrained(tokenizer)),
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.inner,
    )
    bert = folder / "bert"
    BertModel(config).save_pretrained(bert)
    AutoTokenizer.from_pretrained(tokenizer).save_pretrained(bert)
    modules = [Transformer(str(bert)), Pooling(shape.width, pooling_mode="mean")]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
    ModelInfo(variant="biencoder", max_length=shape.length).write(folder)
    return folder


class Arm:
    """A model in training on its order of batches."""

    def __init__(self, settings: Settings, carried: Carried, tokens: Tokens, start: Path) -> None:
        self.settings, self._carried, self._masks = settings, carried, carried.masks()
        self.learner = build_learner(_job(settings, start, carried.batch_size))
        self.model: nn.Module = self.learner.model
        for module in self.model.modules():
            if isinstance(module, Transformer):
                module.preprocess = tokens.features
        ways = vars(self.learner)
        ways |= {name: tokens.features for name, way in ways.items() if isinstance(way, Tokenise)}
        self.steps = 0
        self._optimiser, self._schedule = self._optimise(1)

    def plan(self, steps: int) -> None:
        """Begin the schedule of a training of ``steps``."""
        self.steps = steps
        self._optimiser, self._schedule = self._optimise(steps)

    def _optimise(self, steps: int) -> Any:
        return build_optimiser(self.model.train(), self.settings.common, steps, getattr(self.learner, "fresh", ()))

    def batch(self, step: int) -> TrainBatch:
        """The batch of a step."""
        carried, random = self._carried, step < self.settings.random_first * self.steps
        order = carried.orders["random" if random else self.settings.recipe.policy]
        rows = order.rows[step]
        return TrainBatch(
            index=step,
            rows=slice(0, len(rows)),
            queries=[carried.texts[number] for number in carried.queries[rows]],
            documents=[carried.texts[number] for number in carried.documents[rows]],
            negatives=[],
            negative_counts=np.zeros(len(rows), np.int64),
            masked=self._masks.of(order, step),
            stands_for=None,
        )

    def time_steps(self, steps: Sequence[int], warm: int) -> float:
        """Median seconds of ``steps`` after the first ``warm``; they train nothing."""
        for group in self._optimiser.param_groups:
            group["lr"] = 0.0
        return median_seconds(self._step, self._prepared(steps), warm)

    def train(self, steps: range) -> tuple[NDArray[np.float64], float]:
        """Train; return loss and accuracy of each step ``(n, 2)``, and the seconds that it took."""
        self.model.train()
        began, outcomes = time.perf_counter(), []
        for prepared in self._prepared(steps):
            outcomes.append(self._step(prepared))
            self._schedule.step()
        told = torch.stack(outcomes).double().cpu().numpy()
        return told, time.perf_counter() - began

    def _step(self, prepared: Any) -> Tensor:
        outcome = self.learner.backward(prepared)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.common.max_grad_norm)
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        return torch.stack([outcome.loss.detach().float(), outcome.accuracy.detach().float()])

    def _prepared(self, steps: Sequence[int]) -> Iterator[Any]:
        return prepared_ahead(lambda step: self.learner.prepare(self.batch(step)), steps)


def prepared_ahead(prepare: Callable[[int], Any], steps: Sequence[int]) -> Iterator[Any]:
    """Yield what is prepared for each step, made ahead by threads."""
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(THREADS, "prepare") as pool:
        for step in steps:
            waiting.append(pool.submit(prepare, step))
            if len(waiting) > AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def median_seconds(step: Callable[[Any], object], prepared: Iterable[Any], warm: int) -> float:
    """Median seconds of a step after the first ``warm``; making what is ``prepared`` does not count."""
    seconds = []
    for each in prepared:
        _synchronise()
        began = time.perf_counter()
        step(each)
        _synchronise()
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds[warm:]))


def _synchronise() -> None:
    """Wait for the GPU, if there is one."""
    if training_device() == "cuda":
        torch.cuda.synchronize()


def _job(settings: Settings, start: Path, batch_size: int) -> TrainJob:
    unused, recipe = start.parent / settings.name, settings.recipe
    return TrainJob(
        name=settings.name,
        variant=recipe.variant,
        seed=SEED,
        batch_size=batch_size,
        common=settings.common,
        params=load_variant(recipe.variant).Params(**recipe.options, **settings.options),
        info=ModelInfo.read(start),
        start_model=start,
        shards=unused,
        model=unused,
        curve=unused,
        scratch=unused,
        storage=Storage.at(unused),
        device=training_device(),
    )
