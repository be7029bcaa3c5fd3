"""Tests of what finds damage."""
