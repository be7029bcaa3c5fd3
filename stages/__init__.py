"""The stages of ``dvc.yaml``, which read artifacts and write artifacts: ``python -m stages NAME``."""
