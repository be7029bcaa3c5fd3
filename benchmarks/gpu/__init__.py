"""What training costs on a GPU, in one command: ``python -m benchmarks.gpu``.

Needs PyTorch, sentence-transformers, transformers, pyarrow, NumPy and pydantic; neither Ray, FAISS, Beam nor DVC.
"""
