"""Runs training jobs with Ray Train. No other package of ``trainers`` imports Ray."""

from trainers.launch.fit import launch

__all__ = ["launch"]
