"""Benchmarks of cost and speed. ``--output`` writes the tables in ``benchmarks/tables``."""

from batchwright.core.command import keep_quiet

keep_quiet()  # before the libraries that the benchmarks import
