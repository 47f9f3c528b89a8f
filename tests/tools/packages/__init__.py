"""What is known of packages that are written for PyTorch: `python -m tests.tools.packages`."""
