"""`nn.utils.rnn`: padding and packing of sequences of different lengths."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as tlc
from tests.nn.against_torch import raises, same
from tests.tensor.expressions import lines

PACKED = "R.pack_padded_sequence(x, [1, 2, 4], enforce_sorted=False)"


def script(expression: str):
    """`expression` over a padded tensor `x` of (4, 3, 2) and a packed one `p`."""

    def run(lib):
        rnn = lib.nn.utils.rnn
        x = lib.arange(24.0).reshape(4, 3, 2)
        p = rnn.pack_padded_sequence(x, [1, 2, 4], enforce_sorted=False)
        scope = {"torch": lib, "R": rnn, "x": x, "p": p, "T": lib.tensor}
        result = eval(expression, scope)
        if isinstance(result, rnn.PackedSequence):
            return "packed", list(result)
        return [list(r) if isinstance(r, rnn.PackedSequence) else r for r in result]

    return run


@lines(
    """
    R.pack_padded_sequence(x, [4, 2, 1])
    R.pack_padded_sequence(x, [1, 2, 4], enforce_sorted=False)
    R.pack_padded_sequence(x, [3, 2, 1, 1], batch_first=True)
    R.pack_padded_sequence(x, [1, 3, 3, 2], batch_first=True, enforce_sorted=False)
    R.pack_padded_sequence(x, T([3, 3, 1]))
    R.pack_padded_sequence(x, T([3., 3, 1]))
    R.pack_padded_sequence(x, [4.0, 2.5, 1])
    R.pad_packed_sequence(p)
    R.pad_packed_sequence(p, batch_first=True, padding_value=7)
    R.pad_packed_sequence(p, total_length=6)
    R.pad_packed_sequence(R.pack_padded_sequence(x, [2, 2, 1]), True)
    [R.pad_sequence([torch.ones(2), torch.ones(3)])]
    [R.pad_sequence([torch.ones(2), torch.ones(3)], True, -1, 'left')]
    [R.pad_sequence([torch.ones(2), torch.ones(3)], padding_side='left')]
    [R.pad_sequence(torch.ones(2, 3))]
    [R.pad_sequence(part for part in [torch.ones(2)])]
    [R.pad_sequence([torch.ones(2, 2), torch.ones(3, 1)])]
    [R.pad_sequence([torch.ones(2), torch.ones(3).double()])]
    [R.pad_sequence([torch.ones(0, 2), torch.ones(3, 2)], True, 5)]
    [R.pad_sequence([T([1, 2]), T([3])], padding_value=9).stride()]
    R.pack_sequence([T([1, 2, 3]), T([4])])
    R.pack_sequence([T([1]), T([4, 5])], False)
    R.unpad_sequence(x, T([1, 4, 2]))
    R.unpad_sequence(x, T([1, 3, 2, 2]), batch_first=True)
    R.unpack_sequence(p)
    [R.invert_permutation(T([2, 0, 1])), R.invert_permutation(None)]
    p.to(torch.float64)
    p.double(), p.float(), p.half(), p.long(), p.int(), p.short(), p.char(), p.byte()
    [p.to('cpu') is p, p.cpu() is p, p.is_cuda, p.is_pinned(), len(p), p.float() is p]
    p._replace(data=p.data + 1)
    R.PackedSequence(p.data, p.batch_sizes)
    R.PackedSequence((p.data, p.batch_sizes))
    R.PackedSequence(p.data, p.batch_sizes, p.sorted_indices)
    R.PackedSequence(p.data, p.batch_sizes, None, p.unsorted_indices)
    """
)
def test_results(expression):
    same(script(expression))


@lines(
    """
    R.pack_padded_sequence(x, [1, 2, 4])
    R.pack_padded_sequence(x, [4, 2, 0])
    R.pack_padded_sequence(x, [4, 2])
    R.pack_padded_sequence(torch.zeros(3, 0, 2), [])
    R.pack_padded_sequence(x, T([[3, 3, 1]]))
    R.pack_padded_sequence(x[0, 0], [1, 1])
    R.pad_packed_sequence(p, total_length=3)
    R.pad_sequence([])
    R.pad_sequence(3)
    R.pad_sequence([1, 2])
    R.pad_sequence([torch.ones(2)], padding_side='foo')
    R.pack_sequence([T([1]), T([4, 5])])
    R.PackedSequence(p.data)
    """
)
def test_errors(expression):
    raises(script(expression))


def test_lengths_past_the_end_are_refused():
    # PyTorch packs fewer rows than its batch sizes say.
    with pytest.raises(RuntimeError, match="length is 5, but there are 4 steps"):
        tlc.nn.utils.rnn.pack_padded_sequence(tlc.zeros(4, 3), [5, 2, 1])


def test_gradients():
    def script(lib):
        rnn = lib.nn.utils.rnn
        x = lib.arange(24.0).reshape(4, 3, 2).requires_grad_()
        packed = rnn.pack_padded_sequence(x, [1, 2, 4], enforce_sorted=False)
        padded = rnn.pad_packed_sequence(packed)[0]
        (padded**2).sum().backward()
        parts = [lib.ones(2, requires_grad=True), lib.ones(3, requires_grad=True)]
        (rnn.pad_sequence(parts) * lib.arange(6.0).reshape(3, 2)).sum().backward()
        return x.grad, [part.grad for part in parts]

    same(script)
