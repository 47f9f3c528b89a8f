"""PyTorch's own operator samples, run here and under PyTorch.

PyTorch ships a table of its operators with sample inputs, error inputs and dtypes
(`torch.testing._internal.common_methods_invocations.op_db`). `python -m tests.operator_samples`
runs what it says and counts the names whose every sample agrees.
"""
