"""PyTorch's own module samples, run here and under PyTorch.

PyTorch ships a table of its modules with arguments of their constructors, inputs, error inputs
and dtypes (`torch.testing._internal.common_modules.module_db`). `python -m tests.module_samples`
runs what it says and counts the modules whose every sample agrees.
"""
