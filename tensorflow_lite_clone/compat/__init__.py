"""Modules that are here so that programs find PyTorch's names in PyTorch's places.

Older names of what other rooms have, private modules that packages import from, switches of
libraries that this package does not use. None does work of its own, and no room imports one.

Files lie as in PyTorch and are found there (`core.compat_path`): ``compat/cuda/comm.py`` is
``tensorflow_lite_clone.cuda.comm``, and so ``torch.cuda.comm`` where `dropin` makes ``torch`` mean
this package. They are not imported from here, which would make a second module of the same file.
"""
