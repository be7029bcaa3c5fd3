"""Table 1 of *Contextual Document Embeddings* on a GPU: random or contextual batches, for the biencoder and for CDE.

``carry`` runs where the project is installed, and writes a folder; ``run`` trains and evaluates on a machine that needs
PyTorch, sentence-transformers, transformers, pyarrow, NumPy, SciPy and pydantic, but neither Ray, FAISS, Beam nor DVC.
"""
