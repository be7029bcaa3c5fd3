"""Model cards."""

from pathlib import Path
from string import Template

import yaml

from batchwright.core.fingerprint import fingerprint
from batchwright.formats.shards import Manifest
from trainers.common.train_job import TrainJob


def write_card(folder: Path, template: Path, job: TrainJob, manifest: Manifest, steps: int) -> None:
    """Write a model card from a variant's template, with the training's start model, batches and parameters."""
    facts = {
        "base_model": f"base_model: {job.info.origin}\n" if _on_hub(job.info.origin) else "",
        "start": job.start_model.name,
        "policy": manifest.policy,
        "batch_size": manifest.batch_size,
        "steps": steps,
        "pairs": steps * manifest.batch_size,
        "manifest": fingerprint(manifest.model_dump()),
        "seed": job.seed,
        "parameters": yaml.safe_dump(
            {"common": job.common.model_dump(), job.variant: job.params.model_dump()}, sort_keys=True
        ).rstrip(),
    }
    (folder / "README.md").write_text(Template(template.read_text(encoding="utf-8")).substitute(facts), "utf-8")


def _on_hub(origin: str | None) -> bool:
    return origin is not None and ":" not in origin and not Path(origin).is_dir()
