"""Runs training jobs with Ray Train. No other package of ``trainers`` imports Ray."""

import os

from batchwright.core.runtime import ray_address

if ray_address() == "local":
    # All parts of Ray then listen on the loopback address, whatever the name says, on Linux, too. Ray reads it when it
    # is imported.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
