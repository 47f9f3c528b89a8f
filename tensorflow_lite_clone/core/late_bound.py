"""Functions that are called in rooms below the one that they are written in.

Who calls one imports it from here. Who writes it says so by `LateBound.provide`; for rooms that are
imported when they are first needed, the face of the package does. So no import runs upwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


class LateBound:
    """A declared function, bound when the room that defines it is imported.

    Until then it is `default`, if there is one. Where a call more would be felt, callers use
    `function`.
    """

    __slots__ = ("function", "name")

    function: Callable[..., Any]

    def __init__(self, name: str, default: Callable[..., Any] | None = None) -> None:
        self.name = name
        if default is not None:
            self.function = default

    def provide(self, function: _F) -> _F:
        """Bind it; may decorate the function."""
        self.function = function
        return function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<late-bound {self.name}>"


#: ``serves_device_type(name)``: whether a backend serves a device type that PyTorch does not have.
serves_device_type = LateBound("serves_device_type", lambda name: False)

#: ``apply(op, *tensors, **parameters)``: an op over Tensors, recorded.
apply = LateBound("autograd.apply.apply")
#: ``apply_transformed(cls, args)``: an `autograd.Function` inside of a transform of `func`.
apply_transformed = LateBound("torch.autograd.Function.apply")
#: ``apply_recorded(cls, args)``: one that is a single call in a graph; NotImplemented for others.
apply_recorded = LateBound("compiler.dynamo.function.apply_recorded", lambda *_: NotImplemented)

#: ``standard_function(name)``: the function of the array API standard over Tensors, and whether it
#: takes a device, as one that makes a tensor from nothing; None where there is none.
standard_function = LateBound("array_api.find")
#: ``array_namespace(api_version)``, as `torch.Tensor.__array_namespace__`.
array_namespace = LateBound("torch.Tensor.__array_namespace__")

#: ``compile(function, **options)``, as `torch.compile`.
compile = LateBound("torch.compile")
#: ``vmap(function, in_dims, out_dims, randomness)``, as `torch.vmap`.
vmap = LateBound("torch.vmap")
#: ``empty_sparse(name, size, layout, dtype, device)``: a sparse tensor without elements, for the
#: function `name`.
empty_sparse = LateBound("torch.sparse.empty")
#: ``sparse_tensor(indices, values, size)``, whose arguments are not checked.
sparse_tensor = LateBound("torch.sparse.SparseTensor")
#: ``sparse_matmul(input, other)``, one of which is no dense tensor; NotImplemented for others.
sparse_matmul = LateBound("torch.sparse.matmul", lambda *_: NotImplemented)
#: ``to_sparse(tensor, sparse_dim, layout, blocksize, dense_dim)``: the elements of a dense tensor
#: that are not zero.
to_sparse = LateBound("torch.Tensor.to_sparse")

#: ``group_of_several(process_group)``: the group, or that of all processes; None where this process
#: is alone. And what is done over such a group: batch normalisation, with the group as the last
#: argument; the norm of gradients of which other processes have parts, of parameters, gradients
#: (which stand for the parameters where these are not known) and order, or None.
group_of_several = LateBound("group_of_several", lambda process_group: None)
sync_batch_norm = LateBound("sync_batch_norm")
norm_over_processes = LateBound("norm_over_processes", lambda *_: None)

#: ``compile_kernel(kernel, template_arguments)``: an instance of a CUDA kernel, ready to launch.
compile_kernel = LateBound("compile_kernel")
#: ``launch_step(kernel, template, lists, cells, values, flags, *, lr, found_inf)``: an optimizer's
#: step by a kernel over lists of tensors.
launch_step = LateBound("launch_step")
