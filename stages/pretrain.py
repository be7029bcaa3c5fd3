"""Stage ``pretrain``: pre-trains an encoder on texts, those of all training pairs, and more where there are more."""

import shutil

from batchwright.core.files import read_tsv, write_json
from batchwright.core.fingerprint import fingerprint
from batchwright.core.params import Base, load_params
from batchwright.core.paths import PAIRS, RAW, RESULTS, START_MODELS, check_watched, watching
from batchwright.core.runtime import scratch
from batchwright.formats.models import check_model_watched
from pipelines.ingest.normalise import read_texts
from pipelines.ingest.sources import AnySource
from trainers.launch.fit import launch
from trainers.pretraining.corpus import write_texts
from trainers.pretraining.job import plan_pretraining
from trainers.pretraining.params import PretrainParams, StartEncoder
from trainers.pretraining.train import pretrain

OUTPUT = RESULTS / "pretrain"
_LABELS = {"mlm": "MLM", "decoder": "decoder", "h0_gap": "h0 gap"}


class Pretrain(PretrainParams):
    """Group ``pretrain.NAME``: pre-trains the encoder ``models/start/NAME``."""

    texts: list[AnySource] = []
    """Sources of text to read besides that of all training pairs, such as files in ``raw/texts``. Their pairs are read
    as two texts; ``columns: {query: text, document: text}`` reads one column."""


def main(name: str) -> str:
    """Write ``models/start/NAME`` and its curves, ``results/pretrain/NAME*.tsv``."""
    params = load_params(f"pretrain.{name}", Pretrain)
    check_watched([file for source in params.texts for file in source.files()], RAW / "texts")
    model = START_MODELS / name
    if isinstance(params.encoder, StartEncoder):
        check_model_watched(params.encoder.model)
    work = scratch("texts", fingerprint(name))
    try:
        check_unchanged = watching(lambda: [file for source in params.texts for file in source.files()])
        added, without = write_texts(work / "texts.parquet", read_texts(params.texts))
        check_unchanged()
        job = plan_pretraining(
            name=name,
            seed=load_params("base", Base).seed,
            params=PretrainParams.model_validate(params.model_dump(exclude={"texts"})),
            pairs=PAIRS,
            texts=work / "texts.parquet",
            model=model,
            results=OUTPUT,
        )
    finally:
        shutil.rmtree(work)
    launch(job, pretrain)
    rows = read_tsv(OUTPUT / f"{name}-validation.tsv", made_by="pretrain")
    first, last = ({key: float(value) for key, value in rows[at].items() if key != "step"} for at in (0, -1))
    write_json(OUTPUT / f"{name}.json", {"steps": job.params.steps, "first": first, "last": last})
    losses = [f"{label} {first[key]:.3f} -> {last[key]:.3f}" for key, label in _LABELS.items() if key in last]
    more = f"{added:,} texts besides those of pairs, {without:,} rows without one; " if params.texts else ""
    return f"{name}: {more}{job.params.steps:,} steps; on held-out text " + ", ".join(losses)
