"""Runs training jobs with Ray Train. No other package of ``trainers`` imports Ray."""

import os
import sys

from batchwright.core.runtime import ray_address

if ray_address() == "local" and "ray" not in sys.modules:
    # All parts of a cluster that we start then listen on the loopback address, whatever the name says on Linux, too.
    # Ray looks at it when it is imported.
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")

from trainers.launch.fit import launch

__all__ = ["launch"]
