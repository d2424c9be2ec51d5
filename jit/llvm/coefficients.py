#!/usr/bin/env python3
"""Fits the polynomials of math_*.cpp, and prints them with the largest
weighted error of each. Needs mpmath. Not part of the build: run it to reproduce or to change the tables.

Each fit is minimax (Remez' exchange) in 200 bits, then rounded to the type that evaluates it: the first coefficients
one after the other, the others being fitted again; the rest at once. The best number of first ones is taken."""
import sys

import mpmath as mp

mp.mp.prec = 200
TINY = mp.mpf(10) ** -30  # keeps weights that vanish at 0 away from it


def remez(function, weight, low, high, powers):
    """Coefficients of x^p for p in powers, such that the largest |weight * (function - sum)| on [low, high] is least."""
    n = len(powers)
    middle, radius = (low + high) / 2, (high - low) / 2
    # Chebyshev's points, moved a little: a weight may vanish in the middle.
    nodes = [middle - radius * mp.cos(mp.pi * (2 * i + 1) / (2 * (n + 1))) + radius * 0.006 for i in range(n + 1)]
    grid = [middle - radius * mp.cos(mp.pi * i / (40 * n + 40)) for i in range(40 * n + 41)]
    grid = [(x, function(x), weight(x)) for x in grid]
    coefficients = []
    for _ in range(12):
        matrix, right = mp.matrix(n + 1, n + 1), mp.matrix(n + 1, 1)
        for i, x in enumerate(nodes):
            for j, power in enumerate(powers):
                matrix[i, j] = x**power
            matrix[i, n] = (-1) ** i / weight(x)
            right[i] = function(x)
        coefficients = list(mp.lu_solve(matrix, right))[:n]
        errors = [(x, w * (f - sum(c * x**p for c, p in zip(coefficients, powers)))) for x, f, w in grid]
        extrema = []
        for x, error in errors:
            if extrema and (error > 0) == (extrema[-1][1] > 0):
                if abs(error) > abs(extrema[-1][1]):
                    extrema[-1] = (x, error)
            else:
                extrema.append((x, error))
        while len(extrema) > n + 1:
            extrema.pop(0 if abs(extrema[0][1]) < abs(extrema[-1][1]) else -1)
        if len(extrema) < n + 1:
            break
        nodes = [x for x, _ in extrema]
        largest = max(abs(error) for _, error in errors)
        if largest - min(abs(error) for _, error in extrema) < largest / 1000:
            break
    return coefficients


def rounded(number, bits):
    if number == 0:
        return number
    mantissa, exponent = mp.frexp(number)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), exponent - bits)


def fit(name, function, weight, low, high, degree, bits):
    low, high = mp.mpf(low), mp.mpf(high)
    best = None
    for first in range(4 if bits == 24 else 2):
        done, rest = [], function
        for power in range(first):
            done.append(rounded(remez(rest, weight, low, high, range(power, degree + 1))[0], bits))
            rest = lambda x, f=rest, c=done[-1], p=power: f(x) - c * x**p
        done += [rounded(c, bits) for c in remez(rest, weight, low, high, range(first, degree + 1))]
        value = lambda x: sum(c * x**p for p, c in enumerate(done))
        error = max(abs(weight(x) * (function(x) - value(x))) for x in mp.linspace(low, high, 2000))
        if best is None or error < best[0]:
            best = error, done
    digits = 9 if bits == 24 else 17
    print(f"{name}: error 2^{float(mp.log(best[0], 2)):.1f}\n  {', '.join(f'{float(c):.{digits}g}' for c in best[1])}")
    sys.stdout.flush()


def series_near_zero(function, series, below):
    """`function`, but `series` where cancellation would spoil it."""
    return lambda x: function(x) if abs(x) > below else series(x)


def fit_mapped(name, function, low, high, centre, degree, weight=lambda x: mp.mpf(1)):
    """In (x - centre) / (x + centre), for low <= x <= high."""
    centre = mp.mpf(centre)
    mapped = lambda x: (mp.mpf(x) - centre) / (mp.mpf(x) + centre)
    back = lambda t: centre * (1 + t) / (1 - t)
    fit(name, lambda t: function(back(t)), lambda t: weight(back(t)), mapped(low), mapped(high), degree, 53)


def inverse_erf_over_x(w):
    """erfinv(x) / x for w = -log(1 - x^2), by Newton's steps on log(erfc), which is smooth up to where x is 1."""
    if w < mp.mpf(10) ** -15:
        return mp.sqrt(mp.pi) / 2 * (1 + w * mp.pi / 12)
    x = mp.sqrt(-mp.expm1(-w))
    wanted = -w - mp.log(1 + x)
    y = mp.sqrt(w) if w > 1 else x * mp.mpf("0.9")
    for _ in range(60):
        erfc = mp.erfc(y)
        step = (mp.log(erfc) - wanted) / (-2 / mp.sqrt(mp.pi) * mp.exp(-y * y) / erfc)
        y -= step
        if abs(step) < mp.mpf(2) ** -150:
            break
    return y / x


def stirling_rest(x):
    return mp.loggamma(x) - (x - mp.mpf(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2


def main():
    root = mp.sqrt
    half_ln2 = mp.log(2) / 2 * mp.mpf("1.0001")
    quotient = series_near_zero(lambda r: (mp.expm1(r) - r) / r**2, lambda r: mp.mpf(1) / 2 + r / 6 + r * r / 24, 1e-8)
    for name, degree, bits in ("exp_quotient_f32", 4, 24), ("expm1_quotient_f32", 5, 24), ("exp_quotient_f64", 10, 53):
        fit(name, quotient, lambda r: r**2 * mp.exp(-r) + TINY, -half_ln2, half_ln2, degree, bits)

    exp2 = series_near_zero(lambda r: (mp.power(2, r) - 1) / r, lambda r: mp.log(2) + r * mp.log(2) ** 2 / 2, 1e-12)
    for name, degree, bits in ("exp2_quotient_f32", 6, 24), ("exp2_quotient_f64", 11, 53):
        fit(name, exp2, lambda r: abs(r) * mp.power(2, -r) + TINY, -0.5, 0.5, degree, bits)

    erfc_centre = mp.mpf("1.609375")
    def scaled_erfc(x):
        return mp.log(mp.exp(x * x) * mp.erfc(x))
    slope = 2 * erfc_centre - 2 / root(mp.pi) / mp.exp(scaled_erfc(erfc_centre))
    near = series_near_zero(lambda u: (scaled_erfc(erfc_centre + u) - scaled_erfc(erfc_centre)) / u, lambda u: slope, 1e-20)
    for name, degree in ("erfc_near_f32", 10), ("erfc_near_f64", 21):
        fit(name, near, lambda u: abs(u) + TINY, mp.mpf("0.46") - erfc_centre, mp.mpf("2.76") - erfc_centre, degree, 53)
    for name, centre, limit, degree in ("erfc_far_f32", "5.3125", "10.3", 9), ("erfc_far_f64", "8.6875", "27.5", 30):
        fit_mapped(name, lambda x: scaled_erfc(x) + mp.log(x * root(mp.pi)), "2.74", limit, centre, degree)

    for name, first, last, middle, power, degree in (
            ("erfinv_middle_f32", "0", "6.251", "3.125", 1, 11), ("erfinv_middle_f64", "0", "6.251", "3.125", 1, 24),
            ("erfinv_outer_f32", "2.4999", "4.0001", "3.25", 2, 8), ("erfinv_outer_f64", "2.4999", "4.0001", "3.25", 2, 18),
            ("erfinv_edge_f64", "3.9999", "6.0713", "5.03125", 2, 16)):
        inverse = lambda t: inverse_erf_over_x((t + mp.mpf(middle)) ** power)
        fit(name, inverse, lambda t: 1 / inverse(t), mp.mpf(first) - mp.mpf(middle), mp.mpf(last) - mp.mpf(middle), degree, 53)

    roots = lambda x: (x - 1) * (x - 2)
    lgamma = lambda x: mp.loggamma(x) / roots(x) if abs(roots(x)) > 1e-20 else mp.psi(0, x) / (2 * x - 3)
    for name, degree in ("lgamma_f32", 14), ("lgamma_f64", 27):
        fit_mapped(name, lgamma, 1, 8, "2.828125", degree, lambda x: 1 / lgamma(x))
    for name, degree in ("digamma_f32", 14), ("digamma_f64", 28):
        fit_mapped(name, lambda x: mp.psi(0, x), 1, 8, "2.828125", degree)
    stirling = series_near_zero(
        lambda z: stirling_rest(1 / root(z)) / root(z), lambda z: mp.mpf(1) / 12 - z / 360 + z**2 / 1260 - z**3 / 1680, 1e-8)
    far = series_near_zero(
        lambda z: (-mp.log(z) / 2 - root(z) / 2 - mp.psi(0, 1 / root(z))) / z,
        lambda z: mp.mpf(1) / 12 - z / 120 + z**2 / 252 - z**3 / 240, 1e-8)
    for name, function, degree in (("stirling_f32", stirling, 2), ("stirling_f64", stirling, 7), ("digamma_far_f32", far, 2),
                                   ("digamma_far_f64", far, 8)):
        fit(name, function, lambda z: mp.mpf(1), 0, mp.mpf(1) / 64, degree, 53)

    atan = series_near_zero(lambda z: (mp.atan(root(z)) / root(z) - 1) / z, lambda z: -mp.mpf(1) / 3 + z / 5 - z * z / 7, 1e-10)
    asin = series_near_zero(lambda z: (mp.asin(root(z)) / root(z) - 1) / z,
                            lambda z: mp.mpf(1) / 6 + 3 * z / 40 + 5 * z * z / 112, 1e-10)
    for name, function, limit, degree in (("atan_f32", atan, "1", 9), ("atan_f64", atan, "1", 19),
                                          ("asin_f32", asin, "0.2502", 5),
                                          ("asin_f64", asin, "0.2502", 12)):
        fit(name, function, lambda z: z / (1 + z * function(z)) + TINY, 0, limit, degree, 53)

    tanh = series_near_zero(lambda z: (mp.tanh(root(z)) / root(z) - 1) / z, lambda z: -mp.mpf(1) / 3 + 2 * z / 15, 1e-14)
    for name, limit, degree, bits in ("tanh_f32", "0.91", 6, 24), ("tanh_f64", "0.5625", 10, 53):
        fit(name, tanh, lambda z: z / (1 + z * tanh(z)) + TINY, 0, mp.mpf(limit) ** 2, degree, bits)

    erf = series_near_zero(lambda z: mp.erf(root(z)) / root(z) - 1, lambda z: 2 / root(mp.pi) * (1 - z / 3) - 1, 1e-12)
    for name, degree, bits in ("erf_small_f32", 6, 24), ("erf_small_f64", 11, 53):
        fit(name, erf, lambda z: 1 / (1 + erf(z)), 0, mp.mpf("0.95") ** 2, degree, bits)
    for name, centre, limit, degree, bits in ("log_erfc_f32", 0.9375, 4, 7, 24), ("log_erfc_f64", 0.9375, 6, 22, 53):
        fit(name, lambda t: mp.log(mp.erfc(t + centre)), lambda t: mp.erfc(t + centre) / mp.erf(t + centre),
            mp.mpf("0.92") - centre, limit - centre, degree, bits)

    low, high = 1 / root(2) - 1, root(2) - 1
    log = series_near_zero(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, lambda f: mp.mpf(1) / 3 - f / 4 + f * f / 5, 1e-8)
    for name, degree, bits in ("log_f32", 8, 24), ("log_f64", 20, 53):
        fit(name, log, lambda f: f**2 / (1 - f / 2 + f * f * log(f)) + TINY, low, high, degree, bits)

    log2 = series_near_zero(lambda f: mp.log1p(f) / f / mp.log(2), lambda f: (1 - f / 2 + f * f / 3) / mp.log(2), 1e-8)
    fit("log2_quotient", log2, lambda f: 1 / log2(f), low, high, 14, 53)
    fit("exp2_coefficients", lambda r: mp.power(2, r), lambda r: mp.power(2, -r), -0.5, 0.5, 6, 53)
    atanh = series_near_zero(lambda z: (2 * mp.atanh(root(z)) / root(z) - 2 - 2 * z / 3) / z**2,
                             lambda z: sum(mp.mpf(2) / (2 * k + 5) * z**k for k in range(8)), 1e-8)
    fit("atanh_tail", atanh, lambda z: z * z / 2 + TINY, 0, 0.02948, 7, 53)

    eighth_turn = {24: (mp.pi / 4 * mp.mpf("1.008")) ** 2, 53: (mp.pi / 4 * mp.mpf("1.0001")) ** 2}
    sin = series_near_zero(lambda z: (mp.sin(root(z)) / root(z) - 1) / z, lambda z: -mp.mpf(1) / 6 + z / 120, 1e-14)
    for name, degree, bits in ("sin_f32", 3, 24), ("sin_f64", 6, 53):
        fit(name, sin, lambda z: z / (1 + z * sin(z)) + TINY, 0, eighth_turn[bits], degree, bits)
    cos = series_near_zero(lambda z: (mp.cos(root(z)) - 1 + z / 2) / z**2, lambda z: mp.mpf(1) / 24 - z / 720, 1e-14)
    for name, degree, bits in ("cos_f32", 2, 24), ("cos_f64", 6, 53):
        fit(name, cos, lambda z: z**2 / mp.cos(root(z)) + TINY, 0, eighth_turn[bits], degree, bits)


if __name__ == "__main__":
    main()
