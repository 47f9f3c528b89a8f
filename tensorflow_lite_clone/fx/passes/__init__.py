"""``torch.fx.passes``: what reads, takes apart and changes graphs."""
