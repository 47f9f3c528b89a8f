"""Checkpoints that both libraries can make: name -> a function of the library."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

TABLE: dict[str, Callable[[Any], Any]] = {}

DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 "
    "uint16 uint32 uint64"
).split()
for _dtype in DTYPES:
    TABLE[_dtype] = lambda lib, dtype=_dtype: lib.tensor(
        [[0, 1, 2], [100, 7, 5]], dtype=getattr(lib, dtype)
    )
    TABLE[f"{_dtype}_parts"] = lambda lib, dtype=_dtype: (
        lambda x: {"whole": x, "row": x[1], "column": x[:, 2], "turned": x.t()}
    )(lib.tensor([[0, 1, 2], [3, 4, 1]], dtype=getattr(lib, dtype)))

_EXPRESSIONS = """
    lib.tensor(3.5)
    lib.tensor([float("nan"), float("inf"), -0.0])
    lib.zeros(0)
    lib.zeros(0, 3)
    lib.zeros(2, 0, 3)
    lib.ones(2, 3, requires_grad=True)
    [lib.ones(3, requires_grad=True), lib.ones(3)]
    lib.nn.Parameter(lib.arange(3.0))
    lib.nn.Parameter(lib.arange(3.0), requires_grad=False)
    [lib.nn.Parameter(lib.arange(6.0).view(2, 3).t())]
    (lambda p: {"a": p, "b": p})(lib.nn.Parameter(lib.ones(2)))
    (lambda x: [x, x, x[1:], x.view(-1)])(lib.arange(6.0).view(2, 3))
    lib.arange(10)[2:8:3]
    lib.ones(1).expand(4)
    lib.arange(3.0).expand(2, 3)
    lib.arange(24.0).view(1, 2, 3, 4).to(memory_format=lib.channels_last)
    lib.arange(24.0).view(2, 3, 4).permute(2, 0, 1)
    lib.arange(24.0).view(2, 3, 4)[1, ::2, 1:3]
    lib.arange(12.0).unfold(0, 4, 2)
    lib.arange(9.0).view(3, 3).diagonal()
    lib.as_strided(lib.arange(12.0), (2, 3), (1, 2), 3)
    lib.tensor([1 + 2j, 3 - 1j])
    lib.tensor([1 + 2j, 3 - 1j]).conj().resolve_conj()
    lib.view_as_real(lib.tensor([1 + 2j, 3 - 1j]))
    lib.tensor([1 + 2j, 3 - 1j]).real.clone()
    lib.ones(3).view(lib.int32)
    lib.arange(4, dtype=lib.int64).view(lib.uint8)
    lib.ones(300, 300)
    [lib.full((n,), float(n)) for n in range(20)]
    lib.float32
    [lib.bool, lib.bfloat16, lib.complex128, lib.uint8, lib.long, lib.half]
    lib.device("cpu")
    [lib.device("cuda", 1), lib.device("cuda:0"), lib.device("cuda")]
    lib.Size([1, 2, 3])
    lib.Size([])
    lib.strided
    None
    {}
    []
    ()
    OrderedDict()
    OrderedDict([("a", 1), ("b", lib.ones(2))])
    Counter("abca")
    {1, 2, 3}
    set()
    b"bytes \\xff"
    bytearray(b"bytes \\xff")
    bytearray()
    1 + 2j
    [0, 1, -1, 255, 256, 65536, 2**31, -2**31, 2**63, -2**70, 2**100, 2**1000]
    [1.5, -0.0, float("inf"), float("nan"), 1e-300]
    [True, False, None]
    ["", "text", "\\u00e9\\u4e16\\U0001f600", "x" * 1000]
    {1: "a", "b": 2, (1, "c"): 3, None: 4, 1.5: 5, True: 6}
    {"a": [1, {"b": (2, [3, {"c": lib.ones(1)}])}]}
    (lambda l: [l, l, {"again": l}])([lib.ones(1)])
    [(1, (2, (3, (4,)))), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)]
    list(range(3000))
    {str(n): n for n in range(3000)}
    {"epoch": 3, "lr": 1e-3, "names": ["a", "b"], "best": None, "done": False}
    lib.manual_seed(3).get_state()
    lib.nn.Linear(2, 3).double().state_dict().keys().__len__()
    """.strip().splitlines()
for _line in _EXPRESSIONS:
    TABLE[_line.strip()] = eval(
        f"lambda lib: ({_line.strip()})", {"OrderedDict": OrderedDict, "Counter": Counter}
    )


def case(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Enter a function into the table."""
    TABLE[make.__name__] = make
    return make


def filled(module: Any, lib: Any) -> Any:
    """The module with known parameters."""
    with lib.no_grad():
        for number, parameter in enumerate(module.parameters()):
            parameter.copy_(lib.arange(parameter.numel()).view(parameter.shape) / 8 + number)
    return module


@case
def state_of_a_linear(lib: Any) -> Any:
    return filled(lib.nn.Linear(3, 2), lib).state_dict()


@case
def state_of_a_network(lib: Any) -> Any:
    nn = lib.nn
    layers = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)
    return filled(nn.Sequential(*layers), lib).state_dict()


@case
def state_of_a_recurrent_layer(lib: Any) -> Any:
    return filled(lib.nn.LSTM(2, 3, num_layers=2), lib).state_dict()


@case
def state_of_a_transformer_layer(lib: Any) -> Any:
    return filled(lib.nn.TransformerEncoderLayer(4, 2, 8), lib).state_dict()


@case
def parameters_of_a_module(lib: Any) -> Any:
    return dict(filled(lib.nn.Linear(3, 2), lib).named_parameters())


@case
def tied_weights(lib: Any) -> Any:
    first, second = lib.nn.Linear(2, 2), lib.nn.Linear(2, 2)
    second.weight = first.weight
    return filled(lib.nn.Sequential(first, second), lib).state_dict()


def _trained(lib: Any, name: str, **options: Any) -> Any:
    model = filled(lib.nn.Linear(3, 2), lib)
    optimizer = getattr(lib.optim, name)(model.parameters(), lr=0.5, **options)
    for _ in range(2):
        optimizer.zero_grad()
        model(lib.ones(4, 3)).sum().backward()
        optimizer.step()
    for state in optimizer.state.values():  # Adam's are not equal to the last bit
        for value in state.values():
            value.copy_(lib.arange(value.numel()).view(value.shape))
    return filled(model, lib), optimizer


@case
def momentum(lib: Any) -> Any:
    return _trained(lib, "SGD", momentum=0.5)[1].state_dict()


@case
def checkpoint_of_a_training(lib: Any) -> Any:
    model, optimizer = _trained(lib, "Adam", betas=(0.5, 0.5), eps=1.0)
    schedule = lib.optim.lr_scheduler.StepLR(optimizer, 2)
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "schedule": {k: v for k, v in schedule.state_dict().items() if k[0] != "_"},
        "epoch": 3,
    }


@case
def attributes_of_tensors(lib: Any) -> Any:
    x, p = lib.ones(2), lib.nn.Parameter(lib.ones(2))
    x.note, p.note = "of a tensor", ["of a", {"parameter": 1}]
    return [x, p]


@case
def buffers(lib: Any) -> Any:
    return [lib.nn.Buffer(lib.ones(2)).detach(), lib.nn.BatchNorm1d(2).state_dict()]


@case
def no_leaf(lib: Any) -> Any:
    return lib.ones(2, requires_grad=True) * 2
