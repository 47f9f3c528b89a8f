"""What the suites over PyTorch's own tables share: values that cross, comparisons, the command.

PyTorch ships tables of its operators and modules with inputs for each (`torch.testing._internal`).
`tests/operator_samples` and `tests/module_samples` run what they say, here and under PyTorch.
"""
