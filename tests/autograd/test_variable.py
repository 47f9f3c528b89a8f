"""`Variable`, as old programs use it."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as tlc
from tests.nn.against_torch import same

CASES = {
    "leaf": lambda lib, V: V(lib.ones(2), requires_grad=True),
    "of_a_graph": lambda lib, V: V(lib.ones(2, requires_grad=True) * 2),
    "number": lambda lib, V: V(3),
    "list": lambda lib, V: V([1]),
    "position": lambda lib, V: V(lib.ones(2), True),
    "nothing": lambda lib, V: V(),
    "instances": lambda lib, V: (isinstance(lib.ones(1), V), isinstance(3, V)),
    "parameter": lambda lib, V: type(V(lib.nn.Parameter(lib.ones(1)))).__name__,
    "is_leaf": lambda lib, V: V(lib.ones(2, requires_grad=True) * 2, requires_grad=True).is_leaf,
    "memory": lambda lib, V: (lambda x: (V(x).data_ptr() == x.data_ptr(), V(x) is x))(lib.ones(2)),
    "backward": lambda lib, V: V(lib.ones(2), requires_grad=True).add(1).sum().backward(),
    "module": lambda lib, V: (
        __import__(f"{lib.__name__}.autograd.variable", fromlist=["Variable"]).Variable is V
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_variable(name):
    same(lambda lib: CASES[name](lib, lib.autograd.Variable))


def test_volatile_warns():
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert not tlc.autograd.Variable(tlc.ones(1), volatile=True).requires_grad
