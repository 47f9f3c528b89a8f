"""`scipy.signal` on tensors: every function that SciPy lists for any namespace."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.array_api.consumers import SAMPLES, SINGLE, check, lines, refused

signal = pytest.importorskip("scipy.signal", reason="SciPy is not installed")
windows = pytest.importorskip("scipy.signal.windows", reason="SciPy is not installed")

# b and a: a filter of order three; `zeros`, `poles` and `sections` are the same filter.
FILTERS = """
abcd_normalize(matrix, matrix[:, :1], matrix[:1, :], arr([[0.5]]))
bessel(3, arr(0.2))
besselap(4, xp=xp)
bilinear(b, a, 2.0)
bilinear_zpk(zeros, poles, 0.5, 2.0)
buttap(4, xp=xp)
butter(3, arr(0.2))
butter(3, arr([0.2, 0.5]), btype="band", output="sos")
buttord(arr(0.2), arr(0.4), 1.0, 40.0)
cheb1ap(4, 1.0, xp=xp)
cheb1ord(arr(0.2), arr(0.4), 1.0, 40.0)
cheb2ap(4, 30.0, xp=xp)
cheb2ord(arr(0.2), arr(0.4), 1.0, 40.0)
cheby1(3, 1.0, arr(0.2))
cheby2(3, 40.0, arr(0.2))
ellip(3, 1.0, 40.0, arr(0.2))
ellipap(4, 1.0, 30.0, xp=xp)
ellipord(arr(0.2), arr(0.4), 1.0, 40.0)
firls(7, arr([0.0, 0.4, 0.6, 1.0]), arr([1.0, 1.0, 0.0, 0.0]))
firwin(9, arr([0.2, 0.5]))
firwin2(9, arr([0.0, 0.4, 1.0]), arr([1.0, 0.8, 0.0]))
freqs(b, a, worN=t + 1)
freqs(b, a, worN=16)
freqs_zpk(zeros, poles, 0.5, worN=t + 1)
freqz(b, a, worN=t)
freqz(b, a, worN=16)
freqz_sos(sections, worN=16)
freqz_zpk(zeros, poles, 0.5, worN=t)
group_delay((b, a), w=t + 0.1)
iirdesign(arr(0.2), arr(0.4), 1.0, 40.0)
iirfilter(3, arr(0.2), btype="low")
lp2bp(b, a, 2.0, 0.5)
lp2bp_zpk(zeros, poles, 0.5, 2.0, 0.5)
lp2bs(b, a, 2.0, 0.5)
lp2bs_zpk(zeros, poles, 0.5, 2.0, 0.5)
lp2hp(b, a, 2.0)
lp2hp_zpk(zeros, poles, 0.5, 2.0)
lp2lp(b, a, 2.0)
lp2lp_zpk(zeros, poles, 0.5, 2.0)
minimum_phase(arr([0.1, 0.3, 0.5, 0.3, 0.1]))
normalize(b * 2, a * 2)
remez(9, arr([0.0, 0.1, 0.2, 0.5]), arr([1.0, 0.0]))
savgol_coeffs(5, 2, xp=xp)
sos2tf(sections)
sos2zpk(sections)
sosfreqz(sections, worN=16)
tf2sos(b, a)
zpk2tf(*tf2zpk(b, a))
zpk2sos(zeros, poles, 0.5)
zpk2tf(zeros, poles, 0.5)
"""
SIGNALS = """
choose_conv_method(v, w)
convolve(v, w)
convolve(v, w, mode="same", method="direct")
convolve(image, image[:3, :3], method="fft")
convolve2d(image, image[:3, :3], boundary="symm")
correlate(v, w)
correlate(z, z)
correlate2d(image, image[:3, :3], mode="valid")
cspline1d(v)
cspline1d_eval(v, t * 4)
cspline2d(image, 1.0, 0.01)
deconvolve(v, arr([1.0, 0.5]))
detrend(x, axis=0)
detrend(v, type="constant")
detrend(v, bp=arr([5, 10]))
envelope(v)
fftconvolve(v, w)
fftconvolve(x, y, axes=0)
filtfilt(b, a, v)
gauss_spline(t, 3)
hilbert(v)
hilbert2(image)
lfilter(b, a, v)
lfilter(b, a, x, axis=0, zi=x[:3, :])
lfilter_zi(b, a)
lfiltic(b, a, v[:3])
medfilt(v, 5)
medfilt2d(image, 3)
oaconvolve(v, w[:5])
order_filter(image, arr([[1, 1, 1]]), 1)
qspline1d(v)
qspline1d_eval(v, t * 4)
resample(v, 30)
resample(x, 10, axis=0, window="hann")
resample_poly(v, 3, 2)
savgol_filter(v, 5, 2)
sosfilt(sections, v)
sosfilt_zi(sections)
sosfiltfilt(sections, v)
spline_filter(large, 1.0)
upfirdn(arr([1.0, 0.5, 0.25]), v, 2, 3)
vectorstrength(p, arr([0.7, 1.1]))
wiener(image, 3)
"""
WINDOWS = """
barthann(12, xp=xp)
bartlett(12, xp=xp)
blackman(12, xp=xp)
blackmanharris(12, xp=xp)
bohman(12, xp=xp)
boxcar(12, xp=xp)
chebwin(12, 60, xp=xp)
cosine(12, xp=xp)
exponential(12, xp=xp)
flattop(12, xp=xp)
gaussian(12, 2.0, xp=xp)
general_cosine(12, arr([0.5, 0.3, 0.2]))
general_gaussian(12, 1.5, 2.0, xp=xp)
general_hamming(12, 0.6, xp=xp)
get_window("hann", 12, xp=xp)
get_window(("kaiser", 4.0), 12, xp=xp)
hamming(12, xp=xp)
hann(12, sym=False, xp=xp)
kaiser(12, 4.0, xp=xp)
kaiser_bessel_derived(12, 4.0, xp=xp)
lanczos(12, xp=xp)
nuttall(12, xp=xp)
parzen(12, xp=xp)
triang(12, xp=xp)
tukey(12, 0.4, xp=xp)
"""
_LTI = "SciPy computes with NumPy's arrays, and gives them back, for PyTorch's tensors too"
REFUSED = {
    "bode((b, a), w=t + 1)": _LTI,
    "impulse((b, a), T=t)": _LTI,
    "place_poles(matrix, matrix[:, :2], arr([-1.0, -2.0, -3.0, -4.0])).computed_poles": _LTI,
}
# SciPy makes arrays of numbers on the way, which are of the default dtype.
SINGLE_CALLS = """
gammatone(0.2, "iir", xp=xp)
gammatone(0.2, "fir", xp=xp)
iircomb(0.25, 10.0, xp=xp)
iirnotch(0.3, 10.0, xp=xp)
iirpeak(0.3, 10.0, xp=xp)
vectorstrength(p, 0.7)
windows.taylor(12, xp=xp)
"""


def filters(given: dict[str, Any]) -> dict[str, Any]:
    design = partial(signal.ellip, 3, 1.0, 40.0, 0.3)
    names = dict(zip(["b", "a", "zeros", "poles"], (*design(), *design(output="zpk"))))
    names["sections"] = design(output="sos")
    names["large"] = np.tile(SAMPLES["image"], (4, 3))
    return {name: given["arr"](value) for name, value in names.items()}


@pytest.mark.parametrize("call", [*lines(FILTERS), *lines(SIGNALS), *refused(REFUSED)])
def test_call(call: str) -> None:
    check(call, signal, names=filters)


@pytest.mark.parametrize("call", lines(WINDOWS))
def test_windows(call: str) -> None:
    check(call, windows)


@pytest.mark.parametrize("call", lines(SINGLE_CALLS))
def test_of_the_default_dtype(call: str) -> None:
    check(call, signal, SINGLE, names=filters)
