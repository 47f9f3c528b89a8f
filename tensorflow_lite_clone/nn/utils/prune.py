"""Parameters of which some entries are held at zero, as ``torch.nn.utils.prune``.

A pruned parameter `NAME` becomes the parameter ``NAME_orig`` and the buffer ``NAME_mask``; a hook
before the module's forward sets `NAME` to their product.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.utils.convert_parameters import parameters_to_vector
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """What chooses the entries to prune, and the hook that prunes them.

    A subclass defines `compute_mask`, and in `PRUNING_TYPE` what it is to choose among where some
    entries are pruned already: ``"unstructured"``: the entries that are left; ``"structured"``:
    the slices along its `dim` of which something is left; ``"global"``: all.
    """

    PRUNING_TYPE: str
    _tensor_name: str

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask, like `t`, which has the importance of each entry; called by the names."""

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Module) -> Tensor:
        """The module's original parameter times its mask."""
        original = getattr(module, f"{self._tensor_name}_orig")
        mask = getattr(module, f"{self._tensor_name}_mask")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune the module's parameter `name` by ``cls(*args, **kwargs)``; returns the hook.

        Of a pruned parameter more is pruned: the hook is then a `PruningContainer`. Without
        `importance_scores` the parameter's own values are what `compute_mask` sees.
        """
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        earlier = _hook_of(module, name)
        if earlier is not None:
            number, hook = earlier
            del module._forward_pre_hooks[number]
            container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
            container.add_pruning_method(method)
            method = container

        tensor = getattr(module, name)
        _expect_scores(importance_scores, tensor, f"parameter {name} of {module}")
        scores = tensor if importance_scores is None else importance_scores
        if earlier is None:
            mask = method.compute_mask(scores, default_mask=_ones_like(tensor))
            delattr(module, name)
            module.register_parameter(f"{name}_orig", tensor)
        else:
            before = getattr(module, f"{name}_mask").detach().clone()
            mask = method.compute_mask(scores, default_mask=before)
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Any = None
    ) -> Tensor:
        """`t` with some entries zero; `default_mask` says what is pruned already."""
        _expect_scores(importance_scores, t, "tensor t")
        scores = t if importance_scores is None else importance_scores
        before = _ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=before)

    def remove(self, module: Module) -> None:
        """Make the pruned parameter an ordinary one, with the zeros in it."""
        name = self._tensor_name
        values = self.apply_mask(module)
        original = module._parameters[f"{name}_orig"]
        original.data = values.data
        for attribute in (name, f"{name}_orig", f"{name}_mask"):
            delattr(module, attribute)
        setattr(module, name, original)


def _ones_like(t: Tensor) -> Tensor:
    return t.new_ones(t.shape)


def _expect_scores(scores: Tensor | None, tensor: Tensor, what: str) -> None:
    if scores is not None and scores.shape != tensor.shape:
        raise AssertionError(
            f"importance_scores should have the same shape as {what}, got {scores.shape} vs "
            f"{tensor.shape}"
        )


def _hook_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """The hook that prunes the module's parameter `name`, and its number."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return number, hook
    return None


class PruningContainer(BasePruningMethod):
    """Several methods for one parameter, of which each prunes what those before have left."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Add a method for the same parameter: TypeError or ValueError if it is none."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and method._tensor_name != self._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """`default_mask` with what the last method prunes of the entries it is to choose among."""
        method = self._pruning_methods[-1]
        mask = default_mask.clone().to(t.dtype)
        part = _choice(method, mask)
        mask[part] = method.compute_mask(t[part], default_mask=mask[part]).to(mask.dtype)
        return mask


def _choice(method: Any, mask: Tensor) -> Any:
    """The index of the entries that a method is to choose among."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    everything: list[Any] = [slice(None)] * mask.ndim
    if method.PRUNING_TYPE == "structured":
        if not hasattr(method, "dim"):
            raise AttributeError(
                f"{method} is a structured pruning method, which needs an attribute 'dim'"
            )
        dim = method.dim % mask.ndim
        others = [d for d in range(mask.ndim) if d != dim]
        everything[dim] = mask.sum(others) != 0
    elif method.PRUNING_TYPE != "global":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    return tuple(everything)


class Identity(BasePruningMethod):
    """Prunes nothing, but makes original and mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _Amount(BasePruningMethod):
    """A method that prunes a number of entries, or of slices."""

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, size: int) -> int:
        """How many of `size` to prune; ValueError if there are not as many."""
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(self.amount, size)
        return count


class RandomUnstructured(_Amount):
    """Prunes entries at random."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = self._count(t.numel())
        mask = default_mask.clone()
        if count:
            draws = t.new_empty(t.shape).uniform_()
            mask.view(-1)[draws.view(-1).topk(count).indices] = 0
        return mask


class L1Unstructured(_Amount):
    """Prunes the entries of least absolute value."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = self._count(t.numel())
        mask = default_mask.clone()
        if count:
            least = t.abs().reshape(-1).topk(count, largest=False).indices
            mask.view(-1)[least] = 0
        return mask

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: float, importance_scores: Any = None
    ) -> Any:
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomStructured(_Amount):
    """Prunes slices along `dim` at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = self._count(size)
        if not count:
            return default_mask
        draws = empty(size).uniform_().to(t.device)  # where `t` is does not change what is drawn
        kept = draws > draws.kthvalue(count).values
        return _slices(kept, t, self.dim) * default_mask


class LnStructured(_Amount):
    """Prunes the slices along `dim` of least norm of order `n`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = self._count(size)
        norms = _compute_norm(t, self.n, self.dim)
        if not count:
            return default_mask
        kept = norms.new_zeros(size).bool()
        kept[norms.topk(size - count).indices] = True
        return _slices(kept, t, self.dim) * default_mask

    @classmethod
    def apply(  # type: ignore[override]
        cls,
        module: Module,
        name: str,
        amount: float,
        n: Any,
        dim: int,
        importance_scores: Any = None,
    ) -> Any:
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """Prunes what a given mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape "
                f"{self.mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Make original and mask of a parameter without pruning any of it; returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune entries at random: `amount` of them, or that share of them if it is a float."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Module:
    """Prune the entries of least absolute value, or of least `importance_scores`."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune slices along `dim` at random: `amount` of them, or that share if it is a float."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prune the slices along `dim` of least norm of order `n`, of `importance_scores` if given."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune the entries of a parameter for which `mask` is zero; returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one, by ``pruning_method(**kwargs)``.

    `parameters` are pairs of module and name; `importance_scores` may stand for some of them.
    TypeError if the method is not unstructured.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    importance_scores = {} if importance_scores is None else importance_scores
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    tensors = [getattr(module, name) for module, name in pairs]
    scores = [importance_scores.get(pair, tensor) for pair, tensor in zip(pairs, tensors)]
    masks = [
        getattr(module, f"{name}_mask", _ones_like(tensor))
        for (module, name), tensor in zip(pairs, tensors)
    ]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "all"
    mask = PruningContainer(method).compute_mask(
        parameters_to_vector(scores), default_mask=parameters_to_vector(masks)
    )
    parts = mask.split([tensor.numel() for tensor in tensors])
    for (module, name), tensor, part in zip(pairs, tensors, parts):
        custom_from_mask(module, name, mask=part.view_as(tensor))


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter an ordinary one, with the zeros in it; returns the module.

    ValueError if it is not pruned.
    """
    found = _hook_of(module, name)
    if found is None:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    number, hook = found
    hook.remove(module)
    del module._forward_pre_hooks[number]
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module or of one below it is pruned."""
    return any(
        [
            isinstance(hook, BasePruningMethod)
            for part in module.modules()
            for hook in part._forward_pre_hooks.values()
        ]
    )


# -- checks and counts, which methods of one's own use too ------------------------------------


def _is_count(amount: Any) -> bool:
    return isinstance(amount, numbers.Integral)


def _validate_pruning_amount_init(amount: Any) -> None:
    """TypeError or ValueError unless `amount` is a count, or a share between 0 and 1."""
    if not (_is_count(amount) or isinstance(amount, numbers.Real)):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not _is_count(amount) and amount > 1):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    """ValueError if `amount` counts more than there are."""
    if _is_count(amount) and amount > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to "
            f"prune={tensor_size}"
        )


def _validate_structured_pruning(t: Tensor) -> None:
    """ValueError if `t` has less than two dimensions."""
    if t.ndim <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of "
            f"shape {t.shape} with {t.ndim} dims"
        )


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    """How many of `tensor_size` a count or a share is."""
    return amount if _is_count(amount) else round(amount * tensor_size)


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    """IndexError if `t` has no dimension `dim`."""
    if dim >= t.ndim:
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """The norm of order `n` of each slice along `dim`."""
    dims = list(range(t.ndim))
    del dims[dim]
    return t.norm(p=n, dim=dims)


def _slices(kept: Tensor, t: Tensor, dim: int) -> Tensor:
    """A mask like `t` of the slices along `dim` that are kept."""
    sizes = [1] * t.ndim
    sizes[dim] = kept.numel()
    return kept.to(t.dtype).view(sizes).expand(t.shape)
