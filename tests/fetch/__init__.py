"""Tests of the stage fetch."""
