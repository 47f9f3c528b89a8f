"""Between dtypes, devices and Python numbers."""

from __future__ import annotations

import warnings

import pytest

import tensorflow_lite_clone as tlc
from tests.device import DEVICE
from tests.tensor.expressions import check, lines


@lines(
    """
    f.to(torch.float64), f.to('cpu') is f, f.to(torch.float32) is f, f.to(f) is f, f.to(i)
    f.to(torch.float64, copy=True), f.to(torch.float32, copy=True) is f
    f.to(torch.float32, False, True) is f, f.to(f, False, True) is f, f.to(f, True) is f
    f.to('cpu', torch.int32), f.to(device='cpu', dtype=torch.int8)
    f.to(torch.device('cpu'), torch.float16, True, True)
    f.to('cpu', None, False, True) is f
    f.to(tensor=i)
    f.to()
    f.to(None) is f
    f.to('nonsense')
    f.to(torch.float32, torch.float64)
    f.to(torch.float32, dtype=torch.float64)
    f.to(dtype=torch.int64, foo=1)
    f.to([1])
    f.to(memory_format=torch.channels_last)
    torch.ones(1, 2, 3, 4).to(memory_format=torch.channels_last).stride()
    torch.ones(1, 2, 3, 4).to(torch.float64, memory_format=torch.channels_last).stride()
    f.t().to(torch.float64).stride(), f.t().to(torch.float32, copy=True).stride()
    f.to(int), f.to(float), f.to(bool), f.to(dtype=complex)
    x.to(torch.float64).requires_grad, x.to(torch.int64).requires_grad, x.to(x) is x
    f.to(device=torch.device('cpu')) is f, f.cpu() is f
    """
)
def test_to(expression):
    if DEVICE == "cpu" or "cpu" not in expression:
        check(expression)


@lines(
    """
    f.type(), i.type(), b.type(), c.type(), bf.type(), h.type()
    i.byte().type(), i.char().type(), i.short().type(), i.int().type(), f.double().type()
    f.type('torch.DoubleTensor'), f.type(torch.float64), f.type('torch.LongTensor')
    f.type('nonsense')
    f.type('DoubleTensor')
    f.type(float)
    f.type(torch.DoubleTensor), f.type(torch.float32) is f
    f.type_as(i), f.float() is f, f.long(), f.bool(), f.cfloat(), f.cdouble(), f.half()
    f.bfloat16(), i.double(), i.char(), i.byte(), i.short(), i.int()
    torch.FloatTensor([1, 2]), torch.LongTensor([1, 2]), torch.LongTensor(2, 3).shape
    torch.FloatTensor(2).dtype, torch.ByteTensor([1]), torch.BoolTensor([True, False])
    torch.FloatTensor(torch.ones(2)), torch.DoubleTensor((1, 2)), torch.FloatTensor().shape
    torch.FloatTensor(torch.ones(2, dtype=torch.int64))
    f.new([1, 2]), f.new(2, 3).shape, f.new((1, 2)), f.new().shape, i.new([1.5])
    """
)
def test_types(expression):
    if DEVICE == "cpu" or "Tensor" not in expression:
        check(expression)


@lines(
    """
    isinstance(f, torch.FloatTensor), isinstance(i, torch.FloatTensor)
    isinstance(i, torch.LongTensor), isinstance(3, torch.LongTensor)
    isinstance(f, torch.Tensor), isinstance(x, torch.Tensor), isinstance(n, torch.Tensor)
    """
)
@pytest.mark.skipif(DEVICE != "cpu", reason="these are types of CPU tensors")
def test_instances(expression):
    check(expression)


@lines(
    """
    torch.tensor([1.9, -1.9, 100.7]).to(torch.int8), torch.tensor([1.9, -1.9]).int()
    torch.tensor([0.0, 2.0, float('nan')]).bool(), torch.tensor([300]).to(torch.uint8)
    torch.tensor([1 + 2j]).to(torch.float32)
    torch.tensor([1 + 2j]).bool(), torch.tensor([0j]).bool(), torch.tensor([-1]).to(torch.uint8)
    torch.tensor([1e40], dtype=torch.float64).float(), torch.tensor([70000.0]).half()
    torch.tensor([float('inf')]).to(torch.bfloat16), torch.tensor([1.0001]).bfloat16().float()
    torch.tensor([2**40]).int(), torch.tensor([2**40 + 5]).short()
    torch.tensor([2**24 + 1]).float()
    torch.tensor([True, False]).float(), torch.tensor([True]).to(torch.complex64)
    """
)
def test_values_of_casts(expression):
    check(expression)


@lines(
    """
    s.item(), si.item(), c.item(), b.item(), bf[0].item(), h.item(), torch.tensor([[5]]).item()
    f.item()
    torch.tensor([]).item()
    [type(t.item()) for t in (s, si, b, c, bf[0], h, si.byte(), s.double())]
    f.tolist(), s.tolist(), b.tolist(), c.tolist(), bf.tolist(), h.tolist(), f.t().tolist()
    torch.zeros(0, 2).tolist(), torch.zeros(2, 0).tolist(), x.tolist(), f[:, ::2].tolist()
    float(s), int(s), bool(s), complex(s), float(si), int(si), bool(si), complex(c), int(b)
    float(b), float(h), float(bf[0]), float(torch.tensor([[2.5]])), float(x[0]), complex(si)
    float(f)
    int(f)
    complex(f)
    bool(f)
    bool(torch.tensor([]))
    bool(torch.tensor([1, 2]))
    bool(torch.tensor([0.0])), bool(torch.tensor([[3]])), bool(torch.tensor(float('nan')))
    bool(torch.tensor(0j)), bool(torch.tensor(1j)), not torch.tensor(0), 1 if s else 2
    float(c)
    int(c)
    float(torch.tensor(2 + 0j))
    int(torch.tensor(float('inf')))
    int(torch.tensor(float('nan')))
    float(torch.tensor([]))
    int(torch.tensor(-1.9)), int(torch.tensor(2**62)), int(torch.tensor(1e18, dtype=torch.float64))
    [10, 20, 30, 40][si], [10, 20][b], operator.index(si), operator.index(si.byte())
    [10, 20][s]
    [10, 20, 30, 40][torch.tensor([3])]
    [10, 20][f]
    operator.index(c)
    list(range(si)), list(range(torch.tensor(1), torch.tensor(3))), 'abc' * torch.tensor(2)
    hex(si), bin(torch.tensor(5)), '%d' % si, '%.2f' % s, f'{s:.3f}', f'{si:05d}'
    f'{f:.2f}'
    round(s), round(torch.tensor(2.567), 2), abs(torch.tensor(-1)), divmod(si, 2), math.sqrt(s)
    math.floor(s), math.ceil(s), math.trunc(s)
    len(f), len(torch.zeros(0)), list(torch.tensor([1, 2])), 2.0 in f, torch.tensor(3.0) in f
    len(s)
    list(s)
    hash(f) == id(f), f is f, len({f, f, i}), f.__len__()
    torch.is_nonzero(s), torch.is_nonzero(torch.tensor([0]))
    torch.is_nonzero(f)
    """
)
def test_numbers(expression):
    check(expression)


@lines(
    """
    f.is_floating_point(), i.is_floating_point(), c.is_complex(), torch.is_complex(c)
    f.is_signed(), i.byte().is_signed(), b.is_signed(), c.is_signed()
    torch.is_tensor(f), torch.is_tensor(n), torch.is_tensor([1]), torch.is_floating_point(f)
    f.nbytes, f.itemsize, f.element_size(), f.numel(), f.nelement(), f.dim(), f.ndimension()
    f.ndim, f.size(), f.shape, f.size(1), f.storage_offset(), f.stride(), f[1].storage_offset()
    f.layout == torch.strided, f.is_leaf, f.is_cuda, f.is_pinned(), f.is_inference()
    torch.result_type(f, i), torch.result_type(i, 2.5), torch.result_type(2, i)
    torch.result_type(s, i), torch.result_type(1, 2.0), torch.result_type(b, 1)
    torch.result_type(s, si), torch.result_type(c, f), torch.result_type(f.double(), c)
    torch.result_type('a', f)
    torch.float32 == torch.float, torch.float32 is torch.float, torch.int8.itemsize
    repr(torch.half), str(torch.long), torch.complex64.to_real(), torch.float64.to_complex()
    hash(torch.float32) == hash(torch.float), torch.float32 != torch.float64
    torch.zeros(2, dtype=float), torch.zeros(2, dtype=int), torch.tensor([1], dtype=bool)
    torch.zeros(2, dtype='float32')
    torch.zeros(2, dtype=np.float32)
    torch.tensor([1], dtype=3)
    torch.finfo('float32')
    torch.iinfo(3)
    torch.finfo(torch.float32) == torch.finfo(), torch.finfo() == torch.finfo(torch.half)
    """
)
def test_questions(expression):
    check(expression)


@lines(
    """
    f.device, f.get_device(), f.is_cpu
    f.share_memory_() is f
    """
)
@pytest.mark.skipif(DEVICE != "cpu", reason="the answers are about the CPU")
def test_places(expression):
    check(expression)


@lines(
    """
    f.is_sparse, f.is_quantized, f.is_meta, f.is_nested, f.is_mkldnn, f.is_xpu, f.is_mps
    torch.is_signed(i), torch.is_signed(i.byte())
    """
)
def test_kinds_we_lack(expression):
    check(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "f.apply_(lambda v: v * 2 + 1)",
        "i.t().apply_(lambda v: v + 1)",
        "f.map_(torch.ones(3), lambda a, b: a - b)",
        "x.apply_(abs)",
    ],
)
def test_python_functions(expression):
    if DEVICE == "cpu":
        check(expression)


@lines(
    """
    torch.tensor([1j, 1, 0]).bool(), torch.tensor([1j, 1, 0]).float()
    torch.zeros(3, dtype=torch.bool).copy_(torch.tensor([1j, 1, 0]))
    operator.setitem(b3 := torch.zeros(3, dtype=torch.bool), 0, torch.tensor(1j)), b3
    """
)
def test_complex_numbers_as_others(expression):
    check(expression)


@pytest.mark.parametrize("dtype", ["complex64", "bool", "int64", "uint8", "float32"])
def test_conversions_copy_unless_views(dtype):
    for name in ("float", "sign", "round", "floor", "clone", "abs", "bool"):
        x = tlc.ones(3, dtype=getattr(tlc, dtype), device=DEVICE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                made = getattr(x, name)()
            except (RuntimeError, NotImplementedError):
                continue  # as in PyTorch
        if made is not x:
            made.zero_()
            assert x.tolist() == [1, 1, 1], name
