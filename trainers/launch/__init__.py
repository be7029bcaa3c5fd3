"""Runs training jobs with Ray Train. No other package of ``trainers`` imports Ray."""
