"""Many least squares regressions side by side: absorb observations, get estimates and widths.

Each regression keeps the square root of its sufficient statistics: a triangular R with
R'R = X'X (plus the ridge), z with R'z = X'y, the residual sum of squares and the count. Absorbing a
row is d plane rotations, O(d^2), which is as accurate as a fresh QR decomposition of all rows;
updating an inverse is not (with a ridge of 1e-8 and features of 1e6 it loses every digit). For a
context x, one triangular solve v = R'^-1 x gives both numbers a policy needs:

    estimate = beta_hat . x = v . z          variance = x (X'X)^-1 x' = v . v

While a design is singular, its rows span a subspace. Then R is kept in the coordinates of an
orthonormal basis of that subspace, which grows with every new direction; at full rank the basis is
folded into R and dropped. The caller chooses how contexts outside the subspace are treated: see
`SINGULAR`.

Four arms are solved at once. `_simd` has the instructions for that, `_layout` the layout in
memory, `_saved` that of files, and `_prior` what is believed before any data. `_triangle` and
`_rotate` are the linear algebra, `_basis` has the directions seen and the units of features.
`_absorb` adds observations and merges; `_solve`, `_singular` and `_sums` read results.
`_small_matrices` and `_blend` are the algebra of pooled posteriors.
"""

from evenhand.leastsquares._absorb import absorb, merge
from evenhand.leastsquares._layout import (
    SINGULAR,
    Regressions,
    counts,
    listed,
    padded,
    rank_of,
    regressions,
    room_for,
)
from evenhand.leastsquares._prior import Prior
from evenhand.leastsquares._simd import LANES
from evenhand.leastsquares._solve import (
    coefficients,
    noise_variance,
    solve_each,
    solve_shared,
)

__all__ = [
    "LANES",
    "SINGULAR",
    "Prior",
    "Regressions",
    "absorb",
    "coefficients",
    "counts",
    "listed",
    "merge",
    "noise_variance",
    "padded",
    "rank_of",
    "regressions",
    "room_for",
    "solve_each",
    "solve_shared",
]
