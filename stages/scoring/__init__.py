"""Test collections, retrieval metrics and score files, shared by the stages that score models."""
