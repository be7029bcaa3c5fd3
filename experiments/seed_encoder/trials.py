"""Ways to pre-train, and trials of them: each is pre-trained, fine-tuned and measured once per seed.

The encoder is always the same, small enough to pre-train on a CPU; what was measured is kept.
"""

import shutil
import time
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from batchwright.core.files import read_json, read_tsv, write_json
from batchwright.core.fingerprint import fingerprint
from experiments.common.small_models import BASE
from experiments.common.workspace import Workspace
from stages.scoring.collection import HeldOutParams, score_queries
from stages.scoring.retrieval import model_system
from stages.train import DevScores
from trainers.common.job import plan_job
from trainers.common.params import Common
from trainers.pretraining.job import PretrainJob, plan_pretraining
from trainers.pretraining.params import PretrainParams
from trainers.pretraining.train import Pretraining, pretrain
from trainers.seed_encoder import Params
from trainers.variants import train

ENCODER: dict[str, Any] = {
    "kind": "new",
    "vocab_size": 2048,
    "config": {
        "hidden_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 512,
        "max_position_embeddings": 64,
    },
}
SHARED: dict[str, Any] = {
    "encoder": ENCODER,
    "max_length": 32,
    "batch_size": 32,
    "mini_batch_size": 32,
    "validations": 1,
    "warmup_ratio": 0.1,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
}
MLM, SEED = "MLM", "SEED, 3 layers, window 2"
COMPARED = (MLM, SEED, "RetroMAE")
KINDS: dict[str, dict[str, Any]] = {
    MLM: {"decoder": None},
    SEED: {"decoder": {"kind": "weak", "layers": 3, "window": 2}},
    "SEED, 3 layers, window 2, texts joined": {
        "decoder": {"kind": "weak", "layers": 3, "window": 2},
        "one_text": False,
    },
    "SEED, 1 layer, window 2": {"decoder": {"kind": "weak", "layers": 1, "window": 2}},
    "SEED, 1 layer, window 8": {"decoder": {"kind": "weak", "layers": 1, "window": 8}},
    "SEED, 3 layers, all": {"decoder": {"kind": "weak", "layers": 3, "window": None}},
    "SEED, 5 layers, all": {"decoder": {"kind": "weak", "layers": 5, "window": None}},
    "RetroMAE": {"decoder": {"kind": "retromae"}, "mlm_probability": 0.3},
}


class Setting(NamedTuple):
    """One of ``KINDS`` at a learning rate."""

    kind: str
    rate: float

    def params(self, steps: int) -> dict[str, Any]:
        """The group ``pretrain.NAME``."""
        return SHARED | {"learning_rate": self.rate, "steps": steps} | KINDS[self.kind]


Equal = Literal["time", "steps"]
"""What is the same for all settings: processor time, or the number of steps."""
BATCH = 64
SIZES = HeldOutParams(queries=1000, documents=3000, training_documents=True)
TIMED, WARM, ANY_RATE = 100, 20, 1e-3
MASKS = {"vectors": "tfidf", "likeness": "auto"}
FINE_TUNING = {"mini_batch_size": BATCH, "learning_rate": 2e-3, "warmup_ratio": 0.1}


class Measured(NamedTuple):
    """Held-out ``losses`` by name, nDCG@10 by fine-tuning step (``curve``), and at the end by query (``ndcg``)."""

    steps: int
    losses: dict[str, float]
    curve: dict[str, float]
    ndcg: dict[str, float]


class Trials:
    """Trials on some ``domains`` of ``data``, in the empty ``folder``; results are kept in ``kept``.

    All settings take the processor time of ``steps`` steps of the kind ``reference`` or, if ``equal`` is ``steps``, so
    many steps of their own, on the texts of all pairs. A seed draws weights, masks and batches.
    """

    def __init__(
        self,
        folder: Path,
        data: Path,
        domains: list[str],
        kept: Path,
        *,
        reference: str,
        steps: int,
        tuning: int,
        equal: Equal = "time",
    ) -> None:
        self._workspace = Workspace(folder / "space", data, domains, sizes=SIZES)
        self._labelled = partial(Workspace, data=data, names=domains, sizes=SIZES)
        self._folder, self._kept, self._reference, self._steps, self._tuning = folder, kept, reference, steps, tuning
        self._equal = equal
        self._held_out = DevScores(self._workspace.held_out)
        self._pretrained: tuple[Setting, int] | None = None

    def measure(self, setting: Setting, seed: int, labels: float) -> Measured:
        """Pre-train, fine-tune on a share ``labels`` of the pairs and score; read the result if it was kept."""
        by_time = self._equal == "time"
        steps = round(self._steps * self._cost(self._reference) / self._cost(setting.kind)) if by_time else self._steps
        by_time |= setting.kind == self._reference  # its steps are the same either way
        key = [setting.params(self._steps), self._tuning, seed, labels, *([] if by_time else [self._equal])]
        file = self._kept / f"{fingerprint(*key)}.json"
        if not file.exists():
            write_json(file, self._run(setting, steps, seed, labels)._asdict())
        return Measured(**read_json(file, made_by="this experiment"))

    @cache  # noqa: B019 (there is one object)
    def _cost(self, kind: str) -> float:
        """Processor time of a step, measured once and kept, so that all rates and seeds take as many steps."""
        setting = Setting(kind, ANY_RATE)
        file = self._kept / f"cost-{fingerprint(setting.params(1))}.json"
        if not file.exists():
            run = Pretraining(self._plan(setting, 10**9, 0))  # validates at its first step only
            for step in range(1, TIMED + WARM + 1):
                if step == WARM + 1:
                    start = time.process_time()
                run.backward(step, run.read(step))
            write_json(file, {"seconds": (time.process_time() - start) / TIMED})
        return float(read_json(file, made_by="this experiment")["seconds"])

    def _run(self, setting: Setting, steps: int, seed: int, labels: float) -> Measured:
        job = self._plan(setting, steps, seed)
        if self._pretrained != (setting, seed):  # or with other labels before
            pretrain(job)
            self._pretrained = setting, seed
        shards, epochs = self._pack(seed, labels)
        losses = read_tsv(job.results / f"{job.name}-validation.tsv", made_by="pretrain")[-1]
        tuned = plan_job(
            name="tuned",
            variant="seed_encoder",
            seed=seed,
            common=Common.model_validate(
                BASE["train"]["common"]
                | FINE_TUNING
                | {"epochs": epochs, "steps": self._tuning, "evaluate_every": max(1, self._tuning // 6)}
            ),
            params=Params(temperature=0.05),
            start=job.model,
            shards=shards,
            model=self._folder / "tuned",
            curve=self._folder / "tuned.tsv",
            dev=self._held_out,
        )
        train(tuned)
        curve = {row["step"]: float(row["ndcg@10"]) for row in read_tsv(tuned.dev_curve, made_by="train")}
        scored = score_queries(self._held_out.collection, model_system(tuned.model)(self._held_out.collection))
        for scratch in (job.scratch, tuned.scratch):
            shutil.rmtree(scratch, ignore_errors=True)
        ndcg = {query: values["ndcg@10"] for query, values in scored.items()}
        return Measured(steps, {key: float(value) for key, value in losses.items() if key != "step"}, curve, ndcg)

    def _plan(self, setting: Setting, steps: int, seed: int) -> PretrainJob:
        return plan_pretraining(
            name="pretrained",
            seed=seed,
            params=PretrainParams.model_validate(setting.params(steps)),
            pairs=self._workspace.folder / "data/pairs",
            model=self._folder / "pretrained",
            results=self._folder / "results",
        )

    @cache  # noqa: B019 (there is one object)
    def _pack(self, seed: int, labels: float) -> tuple[Path, int]:
        """Random batches of a share of the pairs, drawn by ``seed``, and their epochs."""
        workspace = self._labelled(self._folder / f"{labels}-{seed}", share=labels)
        # Half as many epochs again, since pairs that do not fill a batch are left out.
        epochs = 2 + 3 * self._tuning * BATCH // (2 * workspace.training_pairs)
        changes = {"base.seed": seed, "pack.batch_size": BATCH, "pack.epochs": epochs}
        workspace.set_params(BASE, changes | {"cluster.vectors": "tfidf", "filter": MASKS})
        workspace.filter()
        for stage in ("cluster", "pack random"):
            workspace.run(stage)
        return workspace.folder / "data/shards/random", epochs
