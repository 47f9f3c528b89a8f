"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.mode import enable_grad, no_grad
from tensorflow_lite_clone.ops.pointwise.complex_numbers import view_as_real
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.optim.arguments import check_hyperparameters
from tensorflow_lite_clone.optim.line_search import Point, strong_wolfe
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import Record
from tensorflow_lite_clone.tensor import Tensor

_LEAST_CURVATURE = 1e-10  # pairs with less are left out, which keeps the matrix positive definite


class LBFGS(Optimizer):
    """L-BFGS, as ``torch.optim.LBFGS``, in the form of Schmidt's `minFunc`.

    One `step` makes up to `max_iter` iterations, and calls the closure, which computes the loss and
    the gradients, up to about `max_eval` times. Values are read back to the host. Without
    ``line_search_fn="strong_wolfe"`` the step length is `lr`. Takes one parameter group. Source:
    Nocedal and Wright, "Numerical optimization" (2006), algorithms 7.4 and 7.5.
    """

    _record = Record()

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_hyperparameters(lr=lr)
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, self.hyperparameters(locals()))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Minimise on; returns what the first call of `closure` returned.

        Raises RuntimeError for an unknown `line_search_fn`.
        """
        group = self.param_groups[0]
        evaluate = enable_grad()(closure)
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        result = evaluate()
        here = Point(0, float(result), self._flat_grad(), None)
        state["func_evals"] += 1
        calls = 1
        if _largest(here.gradient) <= group["tolerance_grad"]:
            return result
        for number in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = _direction(state, here.gradient, group["history_size"])
            length = _rate(group["lr"])
            if state["n_iter"] == 1:
                length = min(1.0, 1.0 / here.gradient.abs().sum()) * length
            state["d"], state["t"] = direction, length
            state["prev_flat_grad"], state["prev_loss"] = here.gradient, here.value
            slope = here.gradient.dot(direction)
            if slope > -group["tolerance_change"]:
                break
            is_last = number == group["max_iter"]
            before = here
            most = group["max_eval"] - calls
            here, evaluations = self._move(evaluate, here, slope, direction, is_last, most)
            state["t"] = here.length
            calls += evaluations
            state["func_evals"] += evaluations
            if (
                is_last
                or calls >= group["max_eval"]
                or _largest(here.gradient) <= group["tolerance_grad"]
                or _largest(direction * here.length) <= group["tolerance_change"]
                or abs(here.value - before.value) < group["tolerance_change"]
            ):
                break
        return result

    def _move(
        self,
        evaluate: Callable[[], Any],
        here: Point,
        slope: Tensor,
        direction: Tensor,
        is_last: bool,
        most: int,
    ) -> tuple[Point, int]:
        """Go along the direction; where that leads, and how often the loss was evaluated."""
        group = self.param_groups[0]
        length = self.state[self._params[0]]["t"]
        if group["line_search_fn"] is None:
            self._add(direction, length)
            if is_last:  # nobody would look at the new gradient
                return here._replace(length=length), 0
            return Point(length, float(evaluate()), self._flat_grad(), None), 1
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        start = [param.clone() for param in self._params]

        def restore() -> None:
            for param, value in zip(self._params, start, strict=True):
                param.copy_(value)

        def probe(length: Any) -> Point:
            self._add(direction, length)
            value, gradient = float(evaluate()), self._flat_grad()
            restore()
            return Point(length, value, gradient, gradient.dot(direction))

        found, evaluations = strong_wolfe(
            probe, here._replace(length=0, slope=slope), length, _largest(direction), most
        )
        self._add(direction, found.length)
        return found, evaluations

    def _flat_grad(self) -> Tensor:
        """All gradients as one vector, complex numbers as pairs of reals."""
        parts = []
        for param in self._params:
            g = param.new_zeros(param.shape)
            if param._grad is not None:
                g = param._grad.detach().to_dense()
            parts.append((view_as_real(g) if g.is_complex() else g).reshape(-1))
        return cat(parts, 0)

    def _add(self, direction: Tensor, length: Any) -> None:
        """Move the parameters along a vector."""
        offset = 0
        for param in self._params:
            target = view_as_real(param) if param.is_complex() else param
            part = direction[offset : offset + target.numel()]
            target.add_(part.view(target.shape), alpha=_number(length))
            offset += target.numel()


def _direction(state: dict[str, Any], g: Tensor, history_size: int) -> Tensor:
    """Minus the gradient times the inverse Hessian that the last steps let us guess."""
    if state["n_iter"] == 1:
        state.update(d=None, t=None, old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return -g
    changes, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
    y, s = g - state["prev_flat_grad"], state["d"] * state["t"]
    curvature = y.dot(s)
    if curvature > _LEAST_CURVATURE:
        if len(changes) == history_size:
            for kept in (changes, steps, ro):
                del kept[0]
        changes.append(y)
        steps.append(s)
        ro.append(1.0 / curvature)
        state["H_diag"] = curvature / y.dot(y)
    shares = state.setdefault("al", [None] * history_size)
    direction = -g
    for i in reversed(range(len(changes))):
        shares[i] = steps[i].dot(direction) * ro[i]
        direction = direction - changes[i] * shares[i]
    direction = direction * state["H_diag"]
    for i in range(len(changes)):
        share = changes[i].dot(direction) * ro[i]
        direction = direction + steps[i] * (shares[i] - share)
    return direction


def _largest(x: Tensor) -> Tensor:
    return x.abs().max()


def _rate(lr: Any) -> Any:
    """The learning rate, zero-dim if it is a tensor."""
    return lr.reshape(()) if isinstance(lr, Tensor) else lr


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x
