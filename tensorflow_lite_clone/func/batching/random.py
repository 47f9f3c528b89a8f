"""Random numbers under `vmap`: refused, different for every sample, or the same for all."""

from __future__ import annotations

from typing import Any

#: The arguments that are shapes, by the generator's method.
SHAPE_AT = {
    "uniform": 0, "normal": 0, "log_normal": 0, "exponential": 0, "cauchy": 0, "geometric": 0,
    "bernoulli": 1, "dropout_mask": 1, "randint": 2,
}  # fmt: skip

#: Level number -> how its `vmap` treats random functions, innermost last.
randomness: dict[int, str] = {}

REFUSED = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
    "'different' randomness flags on vmap or perform the randomness operation out of vmap"
)
SHARED = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear "
    "like same randomness. If this is necessary for your usage, please file an issue with "
    "functorch."
)


class BatchedGenerator:
    """The base backend's generator, drawing for all samples of a level."""

    def __init__(self, backend: Any, source: Any = None) -> None:
        self._backend = backend
        self._source = source  # None: the base backend's own

    def __getattr__(self, name: str) -> Any:
        backend = self._backend
        base = backend.base
        source = base.drawn(base.generator) if self._source is None else self._source
        method = getattr(source, name)
        how = randomness.get(backend.level, "error")
        if how == "error":
            raise RuntimeError(REFUSED)

        def draw(*args: Any, **kwargs: Any) -> Any:
            batched = any([backend.is_batched(value) for value in args])
            if not batched and how == "same":
                return backend.make(method(*map(plain, args), **kwargs), True)
            place = SHAPE_AT.get(name, len(args))
            if not batched and place < len(args) and args[place] is not None:
                values = [plain(value) for value in args]
                values[place] = (backend.size, *values[place])
                return backend.make(method(*values, **kwargs), False)
            state = source.get_state() if how == "same" else None
            samples = []
            for number in range(backend.size):
                if state is not None:
                    source.set_state(state)
                values = [v.data[number] if backend.is_batched(v) else plain(v) for v in args]
                samples.append(backend.base.asarray(method(*values, **kwargs)))
            return backend.make(backend.base.F.stack(samples, axis=0), False)

        def plain(value: Any) -> Any:
            return value.data if type(value) is backend.array_type else value

        return draw
