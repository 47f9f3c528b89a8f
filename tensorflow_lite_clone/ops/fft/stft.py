"""The short-time Fourier transform and its inverse.

Windows of a signal, each weighted and transformed alone. The inverse adds the windows up again and
divides by the sum of squared weights, which is the best signal in the sense of least squares
(Griffin and Lim, "Signal estimation from modified short-time Fourier transform", 1984, (6)).
"""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.signature import whole_number
from tensorflow_lite_clone.ops._samples import of_all_samples
from tensorflow_lite_clone.ops.create.constructors import ones
from tensorflow_lite_clone.ops.fft.transforms import fft, ifft, irfft, rfft
from tensorflow_lite_clone.ops.nn.pad import pad
from tensorflow_lite_clone.ops.pointwise import complex_numbers
from tensorflow_lite_clone.ops.shape._views import number_of
from tensorflow_lite_clone.ops.shape.slices import FoldWindows
from tensorflow_lite_clone.ops.shape.views import transpose
from tensorflow_lite_clone.tensor import Tensor

_ONESIDED = "Cannot have onesided output if window or input is complex"
_SMALLEST = 1e-11  # sums of squared weights below it are not divided by


def _lengths(name: str, n_fft: Any, hop_length: Any, win_length: Any) -> tuple[int, int, int]:
    """`n_fft`, and the others with their defaults."""
    n_fft = whole_number(f"{name}(): argument 'n_fft'", n_fft)
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    hop = whole_number(f"{name}(): argument 'hop_length'", hop_length)
    return n_fft, hop, whole_number(f"{name}(): argument 'win_length'", win_length)


def _expect_window(name: str, window: Any, length: int) -> None:
    if window is None:
        warnings.warn(
            f"{name}: no window was given, so all weights are 1; torch.hann_window and others "
            "leak less into other frequencies",
            stacklevel=level_outside(),
        )
    elif not isinstance(window, Tensor):
        raise TypeError(f"{name}(): argument 'window' must be Tensor, not {type(window).__name__}")
    elif window.shape != (length,):
        raise RuntimeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={length}, but got "
            f"window with size {list(window.shape)}"
        )


def _weights(window: Tensor | None, length: int, n_fft: int, like: Tensor) -> Tensor | None:
    """The window in the middle of `n_fft` places; None for ones everywhere."""
    if window is None and length < n_fft:
        window = ones(length, dtype=like.dtype.to_real(), device=like.device)
    if window is None or length == n_fft:
        return window
    left = (n_fft - length) // 2
    return pad(window, (left, n_fft - length - left))


@public("torch", "method")
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The transforms of windows of `n_fft` elements, one every `hop_length` (n_fft // 4).

    `input` is (length) or (batch, length), the result (..., frequencies, windows): complex, or
    with ``return_complex=False`` real with a last dimension of two. `window` has `win_length`
    (n_fft) weights, in the middle of zeros. With `center` a window's middle is at the place of its
    number: `input` is padded by n_fft // 2 on both sides as `nn.functional.pad` does in
    `pad_mode`. `normalized` divides by sqrt(n_fft). `onesided`, the default for real numbers,
    gives n_fft // 2 + 1 frequencies. With `align_to_window`, which only goes without `center`,
    the first window's weights begin at the first element. Raises RuntimeError for what does not
    fit.
    """
    n_fft, hop, length = _lengths("stft", n_fft, hop_length, win_length)
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    x = input
    if center:
        sizes = (1,) * (3 - x.ndim) + tuple(x.shape)
        x = pad(x.reshape(sizes), (n_fft // 2, n_fft // 2), pad_mode)
        x = x.reshape((*input.shape[:-1], x.shape[-1]))
    _expect_window("stft", window, length)
    whole = x.dtype.kind == "c" or (window is not None and window.dtype.kind == "c")
    if return_complex is None and not whole:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further "
            "require that return_complex=True in a future PyTorch release."
        )
    if return_complex is False:
        warnings.warn("stft with return_complex=False is deprecated", stacklevel=level_outside())
    _check_signal(x, n_fft, hop, length)
    if onesided and whole:
        raise RuntimeError(_ONESIDED)
    count = 1 + (x.shape[-1] - n_fft) // hop
    if align_to_window:
        count = 1 + (x.shape[-1] - length) // hop
        x = pad(x, ((n_fft - length) // 2, (n_fft - length) // 2))
    frames = x.unfold(-1, n_fft, hop)
    if frames.shape[-2] != count:
        raise RuntimeError("stft: align_to_window needs an even n_fft - win_length here")
    weights = _weights(window, length, n_fft, x)
    if weights is not None:
        frames = frames * weights
    norm = "ortho" if normalized else None
    one_half = not whole if onesided is None else onesided
    result = transpose((rfft if one_half else fft)(frames, norm=norm), -2, -1)
    return complex_numbers.view_as_real(result) if return_complex is False else result


def _check_signal(x: Tensor, n_fft: int, hop: int, length: int) -> None:
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            "stft: expected a tensor of floating point or complex values, but got "
            f"{x.dtype.short_name}"
        )
    if x.ndim not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got {x.ndim}D")
    if not 0 < n_fft <= x.shape[-1]:
        raise RuntimeError(f"stft: expected 0 < n_fft <= {x.shape[-1]}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"stft: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(f"stft: expected 0 < win_length <= n_fft, but got win_length={length}")


@public("torch", "method")
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal, (length) or (batch, length), whose `stft` is `input`: complex,
    (..., frequencies, windows).

    Arguments as there. `length` cuts the signal or fills it up with zeros. The signal is real
    unless `return_complex`; of all `n_fft` frequencies the first half then says what it is.
    `onesided` is by default whether there are not `n_fft` of them. Raises RuntimeError for what
    does not fit, and where all weights of an element are zeros.
    """
    n_fft, hop, win_length = _lengths("istft", n_fft, hop_length, win_length)
    size = None if length is None else whole_number("istft(): argument 'length'", length)
    if input.dtype.kind != "c":
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    if input.ndim < 2:
        raise IndexError(f"istft: expected a tensor of 2 or 3 dimensions, but got {input.ndim}")
    one_half = input.shape[-2] != n_fft if onesided is None else onesided
    _check_spectrum(input, n_fft, hop, win_length, one_half)
    _expect_window("istft", window, win_length)
    if return_complex and one_half:
        raise RuntimeError(_ONESIDED)
    if not return_complex and window is not None and window.dtype.kind == "c":
        raise RuntimeError("Complex windows are incompatible with return_complex=False")

    x, norm = transpose(input, -2, -1), "ortho" if normalized else None
    frames = ifft(x, norm=norm) if return_complex else irfft(x, n_fft, norm=norm)
    weights = _weights(window, win_length, n_fft, frames)
    if weights is None:
        weights = ones(n_fft, dtype=frames.dtype.to_real(), device=frames.device)
    else:
        frames = frames * weights
    squares = (weights * weights).expand(x.shape[-2], n_fft)
    total = n_fft + hop * (x.shape[-2] - 1)
    start = n_fft // 2 if center else 0
    end = total - start if size is None else start + size
    signal = _added(frames, hop, total)[..., start:end]
    envelope = _added(squares, hop, total)[start:end]
    _check_envelope(envelope)
    signal = signal / envelope
    if end > total:
        warnings.warn(
            "istft: the signal is shorter than length and is filled up with zeros",
            stacklevel=level_outside(),
        )
        signal = pad(signal, (0, end - total))
    return signal


def _added(frames: Tensor, hop: int, total: int) -> Tensor:
    """Windows (..., count, n) summed at their places in a signal (..., total)."""
    shape = (*frames.shape[:-2], total)
    return apply(
        FoldWindows, frames, axis=len(shape) - 1, size=frames.shape[-1], step=hop, shape=shape
    )


def _check_spectrum(input: Tensor, n_fft: int, hop: int, length: int, one_half: bool) -> None:
    shape = input.shape
    if 0 in shape:
        raise RuntimeError("istft: input tensor cannot be empty.")
    if len(shape) > 3:
        raise RuntimeError(f"istft: expected a tensor of 2 or 3 dimensions, but got {len(shape)}")
    rows = n_fft // 2 + 1 if one_half else n_fft
    if shape[-2] != rows:
        raise RuntimeError(
            f"istft: expected the frequency dimension to be {rows} when onesided={one_half}, but "
            f"got {shape[-2]}"
        )
    if not 0 < hop <= length:
        raise RuntimeError(
            f"istft: expected 0 < hop_length <= win_length, but got {hop} and {length}"
        )
    if not 0 < length <= n_fft:
        raise RuntimeError(f"istft: expected 0 < win_length <= n_fft, but got {length}")


def _check_envelope(envelope: Tensor) -> None:
    array, backend = of_all_samples(envelope)
    if not array.size:
        raise RuntimeError("istft: nothing is left of the signal")
    if not backend.has_values:
        return
    least = number_of(backend.F.min(backend.F.abs(array)), backend)
    if least < _SMALLEST:
        raise RuntimeError(f"istft: window overlap add min: {least}")
