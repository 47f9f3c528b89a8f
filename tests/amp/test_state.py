"""Where autocast is on: threads, blocks, decorators, transforms; and dtypes that models mix."""

from __future__ import annotations

import threading

import pytest

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import same
from tests.device import DEVICE

pytestmark = pytest.mark.skipif(DEVICE != "cpu", reason="PyTorch's side runs on the CPU")


def now(lib):
    """What autocast does in this thread."""
    return (
        lib.is_autocast_enabled("cpu"),
        lib.is_autocast_enabled("cuda"),
        lib.get_autocast_dtype("cpu"),
        lib.get_autocast_dtype("cuda"),
        lib.is_autocast_cache_enabled(),
        (lib.ones(2, 2) @ lib.ones(2, 2)).dtype,
    )


def test_a_thread_has_a_state_of_its_own():
    def script(lib):
        found = []
        with lib.autocast("cpu", dtype=lib.float16, cache_enabled=False):
            thread = threading.Thread(target=lambda: found.append(now(lib)))
            thread.start()
            thread.join()
            found.append(now(lib))
        return found

    same(script)


def test_a_block_in_a_thread_is_no_other_threads():
    def script(lib):
        opened, asked, found = threading.Event(), threading.Event(), []

        def other():
            with lib.autocast("cpu"):
                opened.set()
                asked.wait(10)
                found.append(now(lib))

        thread = threading.Thread(target=other)
        thread.start()
        opened.wait(10)
        found.append(now(lib))
        asked.set()
        thread.join()
        return found

    same(script)


def test_blocks_inside_blocks():
    def script(lib):
        found = [now(lib)]
        with lib.autocast("cpu"):
            with lib.autocast("cpu", dtype=lib.float16, enabled=False):
                found.append(now(lib))
                with lib.autocast("cpu"):
                    found.append(now(lib))
            with lib.autocast("cpu", dtype=lib.float16):
                found.append(now(lib))
            found.append(now(lib))
            try:
                with lib.autocast("cpu", enabled=False, cache_enabled=False):
                    raise ValueError
            except ValueError:
                found.append(now(lib))
        return [*found, now(lib)]

    same(script)


def test_settings_without_blocks():
    def script(lib):
        found = []
        try:
            lib.set_autocast_dtype("cpu", lib.float16)
            found.append(now(lib))
            lib.set_autocast_enabled("cpu", True)
            found.append(now(lib))
            with lib.autocast("cpu"):
                found.append(now(lib))
        finally:
            lib.set_autocast_enabled("cpu", False)
            lib.set_autocast_dtype("cpu", lib.bfloat16)
        return [*found, now(lib)]

    same(script)


def test_decorators_and_inference():
    def script(lib):
        @lib.autocast("cpu")
        def product(x):
            with lib.inference_mode():
                return now(lib), (x @ x).dtype, lib.softmax(x, 0).dtype

        @lib.no_grad()
        @lib.autocast("cpu", enabled=False)
        def plain(x):
            return (x @ x).dtype

        with lib.autocast("cpu"):
            return product(lib.ones(2, 2)), plain(lib.ones(2, 2)), now(lib)

    same(script)


def test_casts_under_no_grad_have_gradients_later():
    w = tlc.ones(2, 2, requires_grad=True)
    with tlc.autocast("cpu"):
        with tlc.no_grad():
            w @ w
        (w @ w).float().sum().backward()
    assert w.grad is not None


def test_out_is_not_cast():
    def script(lib):
        with lib.autocast("cpu"):
            out = lib.empty(2, 2)
            lib.mm(lib.ones(2, 2), lib.ones(2, 2), out=out)
            lib.matmul(lib.ones(2, 2), lib.ones(2, 2), out=out)
            return out, lib.ones(2, 2).addmm_(lib.ones(2, 2), lib.ones(2, 2))

    same(script)


@pytest.mark.parametrize("name", ["vmap", "grad", "functional_call"])
def test_transforms(name):
    def script(lib):
        x, w = lib.ones(3, 2), lib.full((2, 2), 0.5)
        layer = lib.nn.Linear(2, 2)
        with lib.autocast("cpu"):
            if name == "vmap":
                return lib.func.vmap(lambda row: (row[None] @ w)[0])(x).dtype
            if name == "grad":
                return lib.func.grad(lambda w: (x @ w).float().sum())(w)
            return lib.func.functional_call(layer, {"weight": w}, (x,)).dtype

    same(script)


LAYERS = {
    "PReLU": lambda lib, x, h: lib.nn.PReLU()(h),
    "cross_entropy": lambda lib, x, h: lib.nn.functional.cross_entropy(
        h, lib.tensor([0, 1, 2, 0]), weight=lib.ones(4)
    ),
    "nll_loss": lambda lib, x, h: lib.nn.functional.nll_loss(
        h, lib.tensor([0, 1, 2, 0]), weight=lib.ones(4)
    ),
    "binary_cross_entropy": lambda lib, x, h: lib.nn.functional.binary_cross_entropy(
        h.sigmoid(), x.sigmoid()
    ),
    "grid_sample": lambda lib, x, h: lib.nn.functional.grid_sample(
        h[None, None], x.reshape(1, 2, 4, 2).tanh(), align_corners=False
    ),
    "attention": lambda lib, x, h: lib.nn.functional.scaled_dot_product_attention(
        h[None], x[None], h[None], attn_mask=h.detach()[None]
    ),
    "quantile": lambda lib, x, h: lib.quantile(h, lib.tensor([0.2, 0.5])),
    "index_copy": lambda lib, x, h: lib.index_copy(x, 0, lib.tensor([0, 2]), h[:2]),
    "prod": lambda lib, x, h: h.prod(1),
    "pad": lambda lib, x, h: lib.nn.functional.pad(h[None], (1, 1), mode="reflect"),
    "hinge": lambda lib, x, h: lib.nn.functional.hinge_embedding_loss(h, x.sign()),
    "LSTM": lambda lib, x, h: lib.nn.LSTM(4, 3, 2, bidirectional=True)(x[None])[0],
    "GRU": lambda lib, x, h: lib.nn.GRU(4, 3)(x[None])[0],
    "RNN": lambda lib, x, h: lib.nn.RNN(4, 3)(x[None])[0],
}


@pytest.mark.parametrize("name", LAYERS)
def test_of_two_dtypes(name):
    """What models pass: results of products beside what is float32, forward and backward."""

    def script(lib):
        lib.manual_seed(0)
        x = lib.linspace(-1, 1, 16).reshape(4, 4).requires_grad_(True)
        w = lib.eye(4, requires_grad=True)
        with lib.autocast("cpu"):
            y = LAYERS[name](lib, x, x @ w)
        y.float().square().sum().backward()
        grads = [None if g is None else (g.dtype, g) for g in (x.grad, w.grad)]
        return y.dtype, y, grads

    same(script, rtol=5e-2, atol=3e-2)
