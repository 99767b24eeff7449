"""The bridge to real language models: the questions of the theory, asked of their own transition rows.

Nothing above this package imports it; it needs the extra ``llm`` (PyTorch and transformers).
"""
