def fold_grad_modes(root, grad):
    pass
