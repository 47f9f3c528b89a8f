"""What an optimizer is made of, said once: `Record`.

The constructor's signature (PyTorch's) says the hyperparameters and their defaults. The record says
the rest: which `State`s the optimizer keeps for a parameter, and which `step` it runs on them.

    class Adagrad(Optimizer):
        _record = Record(adagrad_step, (STEP, State("sum", begin="initial_accumulator_value")))

        def __init__(self, params, lr=1e-2, lr_decay=0, ..., maximize=False):
            check_hyperparameters(lr=lr, lr_decay=lr_decay)
            super().__init__(params, self.hyperparameters(locals()))

From these are made: `defaults` and the groups (`Optimizer.hyperparameters`), what older checkpoints
lack (`Optimizer.__setstate__`), a step's arguments (`Optimizer.update`: states are begun where they
are missing, hyperparameters are read from the group, and the step is run), and the function of
lists that PyTorch has beside the class (`functional`). The formula is the step's rule (see `rule`),
which stands beside the class; a backend may override the step by its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.ops.create.constructors import full_like, zeros_like
from tensorflow_lite_clone.optim.arguments import new_count
from tensorflow_lite_clone.tensor import Tensor

if TYPE_CHECKING:
    from tensorflow_lite_clone.optim.optimizer import Optimizer

#: Hyperparameters that schedules change: a step that was captured reads them anew at every replay.
SCHEDULED = frozenset(
    "lr betas weight_decay momentum dampening alpha rho lr_decay etas step_sizes".split()
)
#: Those that only choose one of PyTorch's implementations: no step takes them.
CHOICES = frozenset("foreach fused capturable differentiable".split())
#: Defaults of what functions take beside hyperparameters.
_OPTIONS = {"grad_scale": None, "found_inf": None, "has_complex": False, "has_sparse_grad": False}
#: Hyperparameters that functions take apart.
_PAIRS = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}


@dataclass(frozen=True)
class State:
    """A tensor that an optimizer keeps for every parameter, of its shape or a zero-dim number.

    It is kept while the hyperparameter `when` is set, and begins as `begin`: a number, or the name
    of a hyperparameter.
    """

    name: str
    begin: float | str = 0.0
    when: str = ""
    is_number: bool = False

    def make(self, param: Tensor, group: dict[str, Any]) -> Tensor:
        """The state with which a parameter begins."""
        begin = float(group[self.begin] if isinstance(self.begin, str) else self.begin)
        if self.is_number:
            return new_count(param, group.get("fused"), begin)
        if not begin:
            return zeros_like(param)
        return full_like(param.detach(), complex(begin, begin) if param.is_complex() else begin)


#: How often a parameter was updated.
STEP = State("step", is_number=True)


def cast_state(param: Tensor | None, value: Any, key: str = "") -> Any:
    """A loaded state with its tensors on the parameter's device and in its dtype."""
    if isinstance(value, Tensor):
        if param is None:
            return value
        if key == "step":
            return value if param.is_cpu else value.to(dtype=float32, device=param.device)
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {name: cast_state(param, entry, name) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(cast_state(param, entry) for entry in value)
    return value


@dataclass
class Record:
    """What an optimizer's class says of it beside the signature of its constructor.

    `step` is the step of its rule, which takes `states` (without `STEP`) in this order. `order`
    names the hyperparameters as PyTorch orders them in `defaults`, if not as the constructor does.
    `newer` names those that groups in older checkpoints may lack, in PyTorch's order: they are
    taken from `filled` or are the constructor's defaults. `fixed` are those that the constructor
    does not take, and `unread` those that no step takes.
    """

    step: Any = None
    states: tuple[State, ...] = ()
    order: str = ""
    newer: str = ""
    filled: dict[str, Any] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    unread: str = ""

    def __set_name__(self, owner: type[Optimizer], name: str) -> None:
        """Read the constructor, and tell the class what the base needs to know."""
        parameters = list(inspect.signature(owner.__init__).parameters.values())[2:]
        self.fields = {p.name: p.default for p in parameters} | self.fixed
        self.names = tuple(self.order.split()) or tuple(self.fields)
        skipped = CHOICES.union(self.unread.split())
        self.taken = tuple([name for name in self.names if name not in skipped])
        self.scheduled = tuple([name for name in self.taken if name in SCHEDULED])
        fills = self.fields | self.filled
        self.lists = tuple([state.name for state in self.states if state is not STEP])
        self.is_counted = "steps" in getattr(self.step, "each", ())
        owner._newer_options = {name: fills[name] for name in self.newer.split()}
        owner._counts = tuple([state.name for state in self.states if state.is_number])
        owner._step_supports_amp_scaling = self.step is not None


def functional(kind: type[Optimizer], lists: str, options: str) -> Callable[..., None]:
    """The step of an optimizer as a function of lists, with PyTorch's signature.

    Parameters, states and `state_steps` (zero-dim tensors) are updated in place; all tensors are on
    one device. `lists` names the parameters, the gradients and the lists of states, `options` the
    arguments with defaults. The step's other hyperparameters must be given, by keyword. What only
    chooses one of PyTorch's implementations is accepted.
    """
    record = kind._record
    states = {}
    for state in record.states:
        for pattern in ("{}s", "{}_list", "state_{}s"):
            states[pattern.format(state.name)] = state
    first, second, *others = lists.split()
    optional = options.split()
    needed = [name for name in record.taken if name not in (*optional, *record.fixed)]
    defaults = _OPTIONS | record.fields
    either, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature(
        [
            *[inspect.Parameter(n, either, annotation=list[Tensor]) for n in lists.split()],
            *[inspect.Parameter(n, either, default=defaults[n]) for n in optional],
            *[inspect.Parameter(n, keyword) for name in needed for n in _PAIRS.get(name, (name,))],
        ],
        return_annotation=None,
    )

    def call(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        group = record.fixed | given
        for name, parts in _PAIRS.items():
            if parts[0] in given:
                group[name] = tuple([given[part] for part in parts])
        kept = {
            states[name].name: given[name]
            for name in others
            if not states[name].when or group[states[name].when]
        }
        if not all([isinstance(count, Tensor) for count in kept.get(STEP.name, [])]):
            raise RuntimeError(
                "API has changed, `state_steps` argument must contain a list of singleton tensors"
            )
        optimizer = kind.__new__(kind)  # without parameters of its own
        optimizer.defaults = {"differentiable": given.get("differentiable")}
        optimizer._found_inf = given.get("found_inf")
        optimizer._run_rule(optimizer._numbers(group), given[first], given[second], kept)

    call.__name__ = call.__qualname__ = kind.__name__.lower()
    call.__module__ = kind.__module__
    call.__doc__ = f"One step of `{kind.__name__}` as a function of lists of tensors, in place."
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call
