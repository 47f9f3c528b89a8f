"""The names of torch.jit."""
