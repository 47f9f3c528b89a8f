"""Sparse tensors beside PyTorch's."""
