"""Stage ``index``: an index of all documents, for a model with one vector per token, and the command that asks it."""
