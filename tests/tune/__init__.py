"""Tests of the stage ``tune``."""
