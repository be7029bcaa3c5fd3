"""Experiments on quality: the code of each beside the tables that it wrote."""

from batchwright.core.command import keep_quiet

keep_quiet()  # before the libraries that the experiments import
