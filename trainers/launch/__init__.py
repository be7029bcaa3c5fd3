"""Runs training jobs with Ray Train. No other package of ``trainers`` imports Ray."""

import os
import sys

from batchwright.core.runtime import ray_address

RAY_CAME_FIRST = "ray" in sys.modules
"""Whether somebody imported Ray before this package, so that it did not read what is set here."""
if ray_address() == "local":
    # All parts of Ray then listen on the loopback address, whatever the name says, on Linux, too. Ray reads it when it
    # is imported.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
