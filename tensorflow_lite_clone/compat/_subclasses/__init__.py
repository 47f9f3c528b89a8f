"""PyTorch's place of tensors without values, which are not here."""
