"""Classical orthogonal polynomials: NumPy's formulas, a thread per element."""

from __future__ import annotations

from typing import Any

import cupy

_KINDS = [f"{shifted}chebyshev_{letter}" for shifted in ("", "shifted_") for letter in "tuvw"]
_KINDS += ["hermite_h", "hermite_he", "laguerre_l", "legendre_p"]

FUNCTION = """
__device__ double tlc_of_angle(double angle, double n, int letter) {
  const double half = 0.5 * angle;
  if (letter == 0) return cos(n * angle);
  if (letter == 2) return cos((n + 0.5) * angle) / cos(half);
  if (letter == 1) return angle == 0.0 ? n + 1.0 : sin((n + 1.0) * angle) / sin(angle);
  return angle == 0.0 ? 2.0 * n + 1.0 : sin((n + 0.5) * angle) / sin(half);
}

__device__ double tlc_polynomial(double x, double n, int kind) {
  n = trunc(n);
  if (n == 0.0) return 1.0;
  if (!(n > 0.0 && n < 9223372036854775808.0)) return 0.0;
  double p = x;
  if (kind < 8) {
    const bool shifted = kind >= 4;
    const double inner = shifted ? 2.0 * x - 1.0 : x;
    int letter = kind % 4;
    if (fabs(inner) <= 1.0 && n > 6.0) {
      const bool mirrored = shifted ? x < 0.5 : x < 0.0;
      const double angle = shifted ? 2.0 * asin(sqrt(fmin(x, 1.0 - x))) : acos(fabs(x));
      if (mirrored && letter >= 2) letter = 5 - letter;
      const double y = tlc_of_angle(angle, n, letter);
      return mirrored && fmod(n, 2.0) == 1.0 ? -y : y;
    }
    x = inner;
    p = letter == 0 ? x : x + x + (letter == 1 ? 0.0 : letter == 2 ? -1.0 : 1.0);
  } else if (kind == 8) {
    p = x + x;
  } else if (kind == 10) {
    p = 1.0 - x;
  }
  double q = 1.0;
  for (double k = 1.0; k < n && p == p; k += 1.0) {
    double next;
    if (kind < 8) next = 2.0 * x * p - q;
    else if (kind == 8) next = 2.0 * (x * p - k * q);
    else if (kind == 9) next = x * p - k * q;
    else if (kind == 10) next = p + (k * (p - q) - x * p) / (k + 1.0);
    else next = ((2.0 * k + 1.0) * x * p - k * q) / (k + 1.0);
    q = p;
    p = next;
  }
  return p;
}
"""

_kernel = cupy.ElementwiseKernel(
    "T x, T n, int32 kind",
    "T y",
    "y = (T)tlc_polynomial((double)x, (double)n, kind)",
    "tlc_polynomial_of",
    preamble=FUNCTION,
)


def polynomial(x: Any, n: Any, *, kind: str) -> Any:
    """The polynomial of order n, truncated; 0 where n is negative, NaN or no int64."""
    return _kernel(x, n, _KINDS.index(kind))
