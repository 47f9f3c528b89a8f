"""Names of PyTorch's that other packages ask for: older, private and lower-level forms."""
