"""Cost and speed; each prints what it measured, and writes its table to ``benchmarks/tables`` when asked."""

from batchwright.core.command import keep_quiet

keep_quiet()  # before the libraries that the benchmarks import
