"""``batchwright retrain``: trains again on what came since, and promotes only what is not worse."""

from project.retrain.promote import promote, roll_back
from project.retrain.retrain import main

__all__ = ["main", "promote", "roll_back"]
