"""What ops cost: floating-point operations and bytes, told from shapes and parameters.

Two sets of formulas. `products` has what multiplies matrices and the like, and counts as PyTorch's
counter does: two operations for a multiplication and its addition, none for biases and scales. An
entry is called as ``formula(*shapes, out_shape=shape, **parameters)``, with None for an input that
is missing. The gradient of the op `name` has its entry at `name` + "_backward", called as
``formula(g_shape, *shapes, needs=(...), **parameters)`` where `needs` says which inputs' gradients
are computed.

The other ops have conventions, counted for an element each (of the result, unless said otherwise):

* any function of elements counts 1, however it is computed; a product with a sum in it 3;
  comparisons, copies and what only moves elements count nothing;
* reductions count 1 for an element of the input; variances 4 (sum, difference, square, sum);
* softmax counts 5 (maximum, difference, exponential, sum, quotient), its gradient 4;
* norms count 7 (a variance, the scale, the weight, the bias), RMS norms 4, with given statistics 4,
  their gradients twice as much; losses of differences 3, of logarithms 5, their gradients 2;
* pools count 1 for an element of a window; Fourier transforms 5 n log2(n), half of it from or to
  real numbers (the usual figure for Cooley and Tukey's algorithm);
* factorizations, inverses and solutions of equations count the leading terms of LAPACK Working
  Note 41, eigenvalues and singular values those of Golub and Van Loan, "Matrix computations";
* gradients of factorizations count their products of matrices and solutions of equations;
* a gradient of a function of elements counts 1 for an element and an input that wants one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2, prod
from typing import Any

from tensorflow_lite_clone.autograd.engine import current
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.storage import Storage

Formula = Callable[..., int]


def get_shape(value: Any) -> Any:
    """The shape of an array or Tensor; a tuple of them for several; anything else as it is."""
    if type(value) is tuple and value and hasattr(value[0], "shape"):
        return tuple([get_shape(part) for part in value])
    return getattr(value, "shape", value)


# -- products -------------------------------------------------------------------------------------


def product_flops(x: tuple, *others: Any, out_shape: Any, **parameters: Any) -> int:
    """2 m n k for (..., m, k) times (..., k, n), whatever stands for the second operand."""
    return 2 * prod(out_shape) * x[-1]


def added_product_flops(x: tuple, y: tuple, z: tuple, *, out_shape: Any, **parameters: Any) -> int:
    """`product_flops` of the second and the third operand."""
    return product_flops(y, z, out_shape=out_shape)


def conv_flops(x: tuple, w: tuple, *others: Any, out_shape: Any, **parameters: Any) -> int:
    """Every element of the result is a sum over the window of one filter."""
    return 2 * prod(out_shape) * prod(w[1:])


def conv_transpose_flops(x: tuple, w: tuple, *others: Any, **parameters: Any) -> int:
    """Every element of the input is multiplied with one filter."""
    return 2 * prod(x) * prod(w[1:])


def conv_weight_flops(g: tuple, x: tuple, *, kernel: Any, groups: int, **parameters: Any) -> int:
    """The gradient of a convolution's weight: as many products as the convolution has."""
    return 2 * prod(g) * (x[1] // groups) * prod(kernel)


def attention_flops(
    q: tuple, k: tuple, v: tuple, *others: Any, out_shape: Any, **parameters: Any
) -> int:
    """Two products: scores (L, S) from E features, results (L, Ev) from S of them.

    Masked scores count, as in PyTorch.
    """
    rows = prod(out_shape[0][:-1])
    return 2 * rows * k[-2] * (k[-1] + v[-1])


def attention_gradient_flops(
    g: tuple, q: tuple, k: tuple, v: tuple, *others: Any, needs: Any, **parameters: Any
) -> int:
    """Five products: the scores again, the weights' gradient, and those of q, k and v."""
    features = k[-1] + v[-1] * needs[2]
    if needs[0] or needs[1] or needs[3]:
        features += v[-1] + k[-1] * (needs[0] + needs[1])
    return 2 * prod(g[:-1]) * k[-2] * features


def lstm_flops(x: tuple, w_ih: tuple, w_hh: tuple, *others: Any, **parameters: Any) -> int:
    """All gates of all steps from the inputs and from the hidden states."""
    steps, n, features = x
    return 2 * steps * n * w_hh[0] * (features + w_hh[1])


def lstm_gradient_flops(
    g: tuple, x: tuple, w_ih: tuple, w_hh: tuple, *others: Any, needs: Any, **parameters: Any
) -> int:
    """Each product's two gradients; the hidden state's leads back to the first step if wanted."""
    steps, n, features = x
    inputs = steps * features * (needs[0] + needs[1])
    states = w_hh[1] * (steps * needs[2] + steps - 1 + needs[4])
    return 2 * n * w_hh[0] * (inputs + states)


def _as_forward(formula: Formula, *factors: int) -> Formula:
    """A gradient that has a product of the forward's size for each factor that wants one."""

    def gradient(g: tuple, *shapes: Any, needs: Any, **parameters: Any) -> int:
        count = sum([needs[place] for place in factors])
        return count * formula(*shapes, out_shape=g, **parameters) if count else 0

    return gradient


#: Formulas that count as PyTorch's do, by the names of ops; `register_flop_formula` adds to them.
products: dict[str, Formula] = {
    "mm": product_flops,
    "bmm": product_flops,
    "linear": product_flops,
    "addmm": added_product_flops,
    "baddbmm": added_product_flops,
    "conv": conv_flops,
    "conv_transpose": conv_transpose_flops,
    "conv_backward_input": conv_transpose_flops,
    "conv_backward_weight": conv_weight_flops,
    "lstm_sequence": lstm_flops,
    "lstm_sequence_backward": lstm_gradient_flops,
    "attention": attention_flops,
    "attention_dropout": attention_flops,
    "mm_backward": _as_forward(product_flops, 0, 1),
    "bmm_backward": _as_forward(product_flops, 0, 1),
    "linear_backward": _as_forward(product_flops, 0, 1),
    "addmm_backward": _as_forward(added_product_flops, 1, 2),
    "baddbmm_backward": _as_forward(added_product_flops, 1, 2),
    "conv_backward": _as_forward(conv_flops, 0, 1),
    "conv_transpose_backward": _as_forward(conv_transpose_flops, 0, 1),
    "conv_backward_input_backward": _as_forward(conv_transpose_flops, 0, 1),
    "conv_backward_weight_backward": _as_forward(conv_weight_flops, 0, 1),
    "attention_backward": attention_gradient_flops,
    "attention_dropout_backward": attention_gradient_flops,
}


# -- everything else: conventions -----------------------------------------------------------------


def _per_result(count: int) -> Formula:
    def formula(*shapes: Any, out_shape: Any, **parameters: Any) -> int:
        return count * prod(_first(out_shape))

    return formula


def _per_input(count: int) -> Formula:
    def formula(x: tuple, *shapes: Any, **parameters: Any) -> int:
        return count * prod(x)

    return formula


def _per_wanted(g: tuple, *shapes: Any, needs: Any, **parameters: Any) -> int:
    return prod(g) * sum(needs)


def _per_larger(count: int) -> Formula:
    """For an element of the input or of the result, whichever has more (a reduction's input)."""

    def gradient(g: tuple, x: Any, *shapes: Any, **parameters: Any) -> int:
        return count * max(prod(g), prod(x or ()))

    return gradient


def _first(shape: Any) -> tuple:
    """A result's shape, or that of the first of several."""
    return shape[0] if shape and type(shape[0]) is tuple else shape


def _per_window(g: tuple, *shapes: Any, kernel: Any, **parameters: Any) -> int:
    return prod(g) * prod(kernel)


def _pooled(*shapes: Any, out_shape: Any, kernel: Any, **parameters: Any) -> int:
    return prod(_first(out_shape)) * prod(kernel)


def _transform(count: float) -> Formula:
    """`count` n log2(n) for each transform of n points along `axes`."""

    def formula(x: tuple, y: Any = None, *, axes: Any, out_shape: Any = None, **other: Any) -> int:
        out_shape = y if out_shape is None else out_shape  # y: the input, of a gradient
        size = max(prod(x), prod(out_shape))
        points = size and prod([max(x[axis], out_shape[axis]) for axis in axes])
        return int(count * size * log2(points)) if points > 1 else 0

    return formula


def _factorization(count: float) -> Formula:
    """`count` n^3 for each (n, n) matrix."""

    def formula(a: tuple, *others: Any, **parameters: Any) -> int:
        return int(count * prod(a) * a[-1])

    return formula


def _solved(count: float) -> Formula:
    """A factorization, and n^2 operations twice, or once, for each column of b."""

    def formula(a: tuple, b: tuple, **parameters: Any) -> int:
        factorized = 2 / 3 * prod(a) * a[-1] if count == 2 else 0
        return int(factorized + count * a[-1] * prod(b))

    return formula


def _solved_gradient(
    g: tuple, a: Any, b: Any = None, *, needs: tuple[bool, ...], **parameters: Any
) -> int:
    """The transposed equations, and a product with the solution for the gradient of a."""
    size = g[-2] if len(g) > 1 else g[-1]
    return 2 * prod(g) * size * (1 + needs[0])


def _svd(x: tuple, **parameters: Any) -> int:
    """4 m^2 n + 8 m n^2 + 9 n^3 for (m, n) with m >= n."""
    m, n = max(x[-2:]), min(x[-2:])
    return prod(x[:-2]) * (4 * m**2 * n + 8 * m * n**2 + 9 * n**3)


def _qr(x: tuple, **parameters: Any) -> int:
    """2 n^2 (m - n / 3) for (m, n) with m >= n, twice where q is formed."""
    long, short = max(x[-2:]), min(x[-2:])
    formed = 1 if parameters.get("mode") == "r" else 2
    return int(formed * prod(x[:-2]) * 2 * short**2 * (long - short / 3))


def _matrices(square: float, mixed: int = 0) -> Formula:
    """Products of a gradient: `square` n^3 + `mixed` m n^2 of (m, n) matrices with m >= n."""

    def gradient(g: tuple, x: tuple, *shapes: Any, **parameters: Any) -> int:
        m, n = max(x[-2:]), min(x[-2:])
        return int(prod(x[:-2]) * n**2 * (square * n + mixed * m))

    return gradient


def _per_source(place: int) -> Formula:
    """1 for an element of the input at `place`, which is added to others."""
    return lambda *shapes, **parameters: prod(shapes[place])


def _table(entries: dict[str, Formula]) -> dict[str, Formula]:
    return {name: formula for names, formula in entries.items() for name in names.split()}


_OF_ELEMENTS = """
    abs acos acosh add airy_ai angle asin asinh atan atan2 atanh bessel_j0 bessel_j1 bessel_y0
    bessel_y1 ceil celu clamp clamp_between clamp_max clamp_min copysign cos cosh deg2rad digamma
    div div_floor div_trunc dropout dropout_backward elu entr erf erfc erfcx erfinv exp exp2 expm1
    floor floor_divide fmax fmin fmod frac gelu gelu_tanh glu hardshrink hardsigmoid hardswish
    hardtanh heaviside hypot i0 i0e i1 i1e igamma igammac leaky_relu lgamma log log10 log1p log2
    log_ndtr log_sigmoid logaddexp logaddexp2 logit maximum minimum mish mul mvlgamma nan_to_num
    ndtr ndtri neg polygamma pow pow_scalar prelu rad2deg reciprocal relu remainder round
    round_decimals rsqrt sgn sigmoid sign silu sin sinc sinh softplus softshrink sqrt square
    standard_expm1 standard_floor_divide standard_round standard_sign sub tan tanh threshold trunc
    xlog1py xlogy zeta
    chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
    hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p
    modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1
    scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t
    shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w
    spherical_bessel_j0
"""
_REDUCTIONS = """
    amax amin argmax argmin max_with_indices mean min_with_indices nansum prod sum
    cumsum cumprod cummax cummin
"""

#: Conventions for ops that `products` has not.
_others: dict[str, Formula] = _table(
    {
        "mv dot": product_flops,
        _OF_ELEMENTS: _per_result(1),
        "addcdiv addcmul lerp lerp_scalar linalg_cross": _per_result(3),
        "linear_recurrence": _per_result(2),
        "lstm_cell_step gru_cell_step": _per_result(10),
        _REDUCTIONS: _per_input(1),
        "vector_norm": _per_input(2),
        "var std logsumexp logcumsumexp": _per_input(4),
        "softmax log_softmax": _per_input(5),
        "batch_norm group_norm layer_norm": _per_input(7),
        "batch_norm_eval rms_norm": _per_input(4),
        "l1_loss mse_loss smooth_l1_loss huber_loss": _per_input(3),
        "binary_cross_entropy binary_cross_entropy_with_logits cross_entropy kl_div": _per_input(5),
        "embedding_backward col2im fold_windows": _per_input(1),
        "index_add scatter_add scatter_reduce": _per_source(2),
        "nll_loss": _per_source(1),
        "max_pool_backward avg_pool_backward": _per_input(1),
        "max_pool avg_pool": _pooled,
        "fft_c2c": _transform(5),
        "fft_r2c fft_c2r": _transform(2.5),
        "cholesky": _factorization(1 / 3),
        "lu_factor det slogdet": _factorization(2 / 3),
        "inv": _factorization(2),
        "eigvalsh": _factorization(4 / 3),
        "eigvals": _factorization(10),
        "eigh": _factorization(9),
        "eig": _factorization(25),
        "svd": _svd,
        "solve": _solved(2),
        "solve_triangular": _solved(1),
        "qr": _qr,
    }
)

#: The same for their gradients.
_other_gradients: dict[str, Formula] = _table(
    {
        "mv dot": _per_wanted,
        _OF_ELEMENTS: _per_wanted,
        "addcdiv addcmul lerp lerp_scalar linalg_cross embedding": _per_wanted,
        "linear_recurrence": _per_larger(4),
        "lstm_cell_step gru_cell_step": _per_larger(20),
        _REDUCTIONS: _per_larger(1),
        "vector_norm logsumexp logcumsumexp": _per_larger(2),
        "var std": _per_larger(3),
        "softmax log_softmax": _per_larger(4),
        "batch_norm group_norm layer_norm": _per_larger(14),
        "batch_norm_eval rms_norm": _per_larger(8),
        "l1_loss mse_loss smooth_l1_loss huber_loss kl_div": _per_larger(2),
        "binary_cross_entropy binary_cross_entropy_with_logits cross_entropy": _per_larger(2),
        "max_pool avg_pool": _per_window,
        "fft_c2c": _transform(5),
        "fft_r2c fft_c2r": _transform(2.5),
        "inv cholesky": _matrices(4),
        "det slogdet": _matrices(2),
        "lu_factor eigh": _matrices(6),
        "eig": _matrices(26 / 3),
        "svd": _matrices(4, 6),
        "qr": _matrices(2, 5),
        "nll_loss": _per_source(2),
        "im2col unfold gather index index_along index_select": _per_wanted,
        "solve solve_triangular": _solved_gradient,
    }
)


def flops_of(
    name: str, arrays: tuple, parameters: dict[str, Any], result: Any, everything: bool = True
) -> int:
    """What the op `name` costs on arrays (or shapes); 0 for an op without a formula.

    Without `everything` only what `products` has is counted.
    """
    formula = products.get(name)
    if formula is None and everything:
        formula = _others.get(name)
    return apply_formula(formula, arrays, parameters, result) if formula is not None else 0


def apply_formula(formula: Formula, arrays: tuple, parameters: dict[str, Any], result: Any) -> int:
    """What a formula says of one call of its op; one marked as raw is given the arrays."""
    if hasattr(formula, "_get_raw"):
        return formula(*arrays, out_val=result, **parameters)
    return formula(*map(get_shape, arrays), out_shape=get_shape(result), **parameters)


def op_name(node: Any) -> str:
    """The name of a node's op; users' functions and the ends of transforms have none."""
    op: Any = getattr(node, "op", None)
    return op.name if op is not None else ""


def flops_of_gradient(node: Any, needs: tuple[bool, ...], everything: bool = True) -> int:
    """What a node's gradients cost of those inputs that `needs` says; before its values are freed.

    0 for a node of a user's function, for an op without a formula, and in a pass that is recorded:
    there the ops that the gradient's formula calls have costs of their own.
    """
    name = op_name(node)
    formula = products.get(f"{name}_backward")
    if formula is None and everything:
        formula = _other_gradients.get(name)
    return 0 if formula is None else apply_gradient_formula(formula, node, needs)


def apply_gradient_formula(formula: Formula, node: Any, needs: tuple[bool, ...]) -> int:
    """What a formula says of a node's gradient, from the shapes that the node knows.

    0 in a pass that is recorded.
    """
    if current.walk is not None and current.walk.create_graph:
        return 0
    saves = node.op.plans[node.mask].saves
    shapes = []
    for place, edge in enumerate(node.edges):
        if edge is not None:
            shapes.append(edge[0].shape_of(edge[1]))
        elif place in saves and node.saved:
            shapes.append(_saved_shape(node.saved[saves.index(place)]))
        else:
            shapes.append(None)
    return formula(node.shape_of(0), *shapes, needs=needs, **node.parameters)


def _saved_shape(storage: Any) -> tuple | None:
    if storage is None:
        return None
    # what hooks packed has noted its shape: nothing is unpacked for it
    shape: tuple = storage.laid.shape if isinstance(storage, Storage) else storage.shape
    return shape


# -- bytes ----------------------------------------------------------------------------------------

#: Ops that read of their first input only as much as they return.
_TAKING = frozenset("embedding gather index index_along index_mask index_select".split())
#: Ops that read nothing of it.
_FILLING = frozenset({"fill", "zero"})


def bytes_of(name: str, arrays: tuple, result: Any) -> int:
    """Bytes that an ideal implementation reads and writes: each input and each result once.

    Views cost nothing; elements that are expanded are read once.
    """
    op = TABLE.get(name)
    if getattr(op, "view", False):
        return 0
    written = _sizes(result) if isinstance(result, tuple | list) else _size(result)
    if name in _TAKING:
        return _sizes(arrays[1:]) + 2 * written
    return written + _sizes(arrays[name in _FILLING :])


def bytes_of_gradient(node: Any, grads: Any, results: Any) -> int:
    """`bytes_of` for a node's gradients: what arrives and what was saved is read."""
    written, read = _sizes(results), _sizes(grads)
    op = getattr(node, "op", None)
    if op is None or (op.view and written == read):
        return 0
    saved = [storage.laid for storage in node.saved or () if isinstance(storage, Storage)]
    return written + read + _sizes(saved)


def _sizes(arrays: Any) -> int:
    return sum(map(_size, arrays))


def _size(array: Any) -> int:
    """Bytes in memory that the array shows; 0 for what is no array."""
    dtype = getattr(array, "dtype", None)
    if dtype is None:
        return 0
    lengths = array.shape
    strides = getattr(array, "strides", ())
    if 0 in strides:
        lengths = [length for length, stride in zip(lengths, strides) if stride or not length]
    size: int = prod(lengths) * dtype.itemsize
    return size
