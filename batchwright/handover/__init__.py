"""Handing on what the pipeline made: to the Hugging Face hub, and as plain files of pairs."""
