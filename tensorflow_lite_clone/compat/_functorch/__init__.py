"""``torch._functorch``: where PyTorch keeps what traces forward and backward passes."""
