"""``torch.utils._sympy``: ranges of sizes, which transformers' exporters read."""
