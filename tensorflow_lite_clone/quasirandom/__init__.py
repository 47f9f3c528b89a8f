"""Sobol' sequences, as ``torch.quasirandom``.

Points that fill the unit cube more evenly than random ones. The direction numbers are those of
S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM
J. Sci. Comput. 30 (2008), in `directions.bin`: for each dimension after the first its primitive
polynomial and its first numbers, as two-byte integers.
"""

from __future__ import annotations

from pathlib import Path
from struct import unpack
from typing import Any

from tensorflow_lite_clone.core.dtypes import DType, get_default_dtype, int64
from tensorflow_lite_clone.ops.create.constructors import tensor, zeros
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.random.generators import Generator
from tensorflow_lite_clone.ops.random.sampling import randint
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["SobolEngine"]


def _directions(dimension: int, bits: int) -> list[list[int]]:
    """Per dimension its direction numbers, of which number j has its highest bit at ``bits - j``.

    From a primitive polynomial ``x^m + a_1 x^(m-1) + ... + 1`` and m numbers the others follow:
    ``v_j = 2 a_1 v_(j-1) ^ 4 a_2 v_(j-2) ^ ... ^ 2^m v_(j-m) ^ v_(j-m)`` (Joe and Kuo, section 2).
    """
    data = (Path(__file__).parent / "directions.bin").read_bytes()
    table = iter(unpack(f"<{len(data) // 2}H", data))
    found = [[1] * bits]
    while len(found) < dimension:
        polynomial = next(table)
        degree = polynomial.bit_length() - 1
        numbers = [next(table) for _ in range(degree)]
        for j in range(degree, bits):
            number = numbers[j - degree]
            for k in range(1, degree + 1):
                if polynomial >> (degree - k) & 1:
                    number ^= numbers[j - k] << k
            numbers.append(number)
        found.append(numbers[:bits])
    return [[v << (bits - 1 - j) for j, v in enumerate(numbers)] for numbers in found]


class SobolEngine:
    """Points of a Sobol' sequence in `dimension` dimensions, 1 to 1111.

    With `scramble` they are scrambled by random lower triangular matrices of bits and a random
    shift (J. Matousek, "On the L2-discrepancy for anchored boxes", J. Complexity 14, 1998); `seed`
    fixes them. Points are drawn on the CPU, in the order of the Gray code. Raises ValueError for
    other dimensions.
    """

    MAXBIT = 30
    MAXDIM = 1111

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = tensor(_directions(dimension, self.MAXBIT), dtype=int64, device="cpu")
        self.shift = zeros(dimension, dtype=int64, device="cpu")
        self.num_generated = 0
        if scramble:
            self._scramble()

    def _scramble(self) -> None:
        bits = self.MAXBIT
        generator = None
        if self.seed is not None:
            generator = Generator("cpu")
            generator.manual_seed(self.seed)
        powers = 1 << arange(bits, device="cpu")
        self.shift = (
            randint(2, (self.dimension, bits), generator=generator, device="cpu") * powers
        ).sum(1)
        size = (self.dimension, bits, bits)
        matrices = randint(2, size, generator=generator, device="cpu").tril()
        matrices.diagonal(dim1=1, dim2=2).fill_(1)
        high_first = powers.flip(0)
        digits = (self.sobolstate.unsqueeze(-1) & high_first) != 0  # (dimension, number, bit)
        mixed = (digits.long() @ matrices.mT) % 2
        self.sobolstate = (mixed * high_first).sum(-1)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next `n` points, (n, dimension) in [0, 1)."""
        index = arange(self.num_generated, self.num_generated + n, device="cpu")
        gray = (index ^ (index >> 1)).unsqueeze(1)
        points = self.shift.expand(n, self.dimension)
        for j in range((self.num_generated + n).bit_length()):
            points = points ^ (((gray >> j) & 1) * self.sobolstate[:, j])
        kind = get_default_dtype() if dtype is None else dtype
        result = points.to(kind) / 2**self.MAXBIT
        if self.num_generated == 0 and n:  # as in PyTorch rounded to the default dtype first
            result[0] = points[0].to(get_default_dtype()).to(kind) / 2**self.MAXBIT
        self.num_generated += n
        if out is None:
            return result
        return out.resize_(result.shape).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next ``2**m`` points; ValueError where they do not make a power of two in all."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Go back to the first point."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next `n` points."""
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        text = f"dimension={self.dimension}"
        text += ", scramble=True" if self.scramble else ""
        text += f", seed={self.seed}" if self.seed is not None else ""
        return f"{type(self).__name__}({text})"
