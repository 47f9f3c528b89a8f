"""What the suites over PyTorch's own tables share: values that cross, comparisons, the command.

PyTorch ships tables of its operators, modules and optimizers with inputs for each
(`torch.testing._internal`). `tests/operator_samples`, `tests/module_samples` and
`tests/optimizer_samples` run what they say, here and under PyTorch.
"""
