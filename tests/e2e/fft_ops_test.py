"""The Fourier transforms of the plugin, on their samples and against the sum that defines them, in Python's floats."""

import cmath
import math

from harness import main
from op_case import OpCase, drawn

TOLERANCES = {"f32": 2e-6, "f64": 1e-13}


def scale(n, norm, is_inverse):
    return {"ortho": 1 / math.sqrt(n), "backward": 1 / n if is_inverse else 1, "forward": 1 if is_inverse else 1 / n}[norm]


def dft(x, is_inverse, norm):
    n, sign = len(x), 2j if is_inverse else -2j
    roots = [cmath.exp(sign * cmath.pi * turn / n) for turn in range(n)]
    return [scale(n, norm, is_inverse) * sum(x[j] * roots[j * k % n] for j in range(n)) for k in range(n)]


def pairs_to_complex(values):
    return [complex(*pair) for pair in zip(values[::2], values[1::2])]


def along(shape, values, dim, transform):
    """`transform` of each line along a dim."""
    dim %= len(shape)
    step = math.prod(shape[dim + 1:])
    length = transform([0j] * shape[dim])
    made = [0j] * (math.prod(shape[:dim]) * len(length) * step)
    for outer in range(math.prod(shape[:dim])):
        for inner in range(step):
            line = values[outer * shape[dim] * step + inner:(outer + 1) * shape[dim] * step:step]
            made[outer * len(length) * step + inner:(outer + 1) * len(length) * step:step] = transform(line)
    return [*shape[:dim], len(length), *shape[dim + 1:]], made


def peer(takes_pairs, gives_pairs, is_inverse):
    def transform(arrays, attrs):
        (shape, values), = arrays
        norm = attrs.get("norm", "backward")

        def line(x):
            if takes_pairs and not gives_pairs:  # x is half of what it means
                n = attrs.get("n", 2 * (len(x) - 1))
                x = [x[0].real] + x[1:(n + 1) // 2] + ([x[n // 2].real] if n % 2 == 0 else [])
                x += [x[n - k].conjugate() for k in range(len(x), n)]
            y = dft(x, is_inverse, norm)
            return y[:len(x) // 2 + 1] if not takes_pairs else y

        if takes_pairs:
            shape, values = shape[:-1], pairs_to_complex(values)
        shape, made = along(shape, values, attrs.get("dim", -1), line)
        if not gives_pairs:
            return shape, [y.real for y in made]
        return [*shape, 2], [part for y in made for part in (y.real, y.imag)]
    return transform


PEERS = {"fft.fft": peer(True, True, False), "fft.ifft": peer(True, True, True), "fft.rfft": peer(False, True, False),
         "fft.irfft": peer(True, False, True)}


class FftOpsTest(OpCase):
    NAME, PACKAGE = "fft_ops", "libkissfft-dev"

    def assert_array(self, actual, expected, tolerance):
        """By the largest element: each of a line has the rounding errors of all."""
        self.assertEqual(actual[0], list(expected[0]))
        largest = max([1, *map(abs, expected[1])])
        for i, (a, e) in enumerate(zip(actual[1], expected[1], strict=True)):
            self.assertLessEqual(abs(a - e), tolerance * largest, f"element {i}: {a}, expected {e}")

    def test_samples_are_the_sums_that_define_them_in_every_mode(self):
        self.assertEqual(self.ops().keys(), PEERS.keys())
        for name, transform in PEERS.items():
            self.check_samples(name, transform, TOLERANCES)

    def test_all_lengths_and_norms(self):
        for n in (*range(1, 18), 49, 97, 128, 180):
            norm = ("backward", "ortho", "forward")[n % 3]
            for name, shape in (("fft.fft", [n, 2]), ("fft.ifft", [n, 2]), ("fft.rfft", [n]), ("fft.irfft", [n // 2 + 1, 2])):
                attrs = {"norm": norm, **({"n": n} if name == "fft.irfft" else {})}
                arrays = [drawn(n, *shape)]
                for dtype, tolerance in TOLERANCES.items():
                    with self.subTest(name, n=n, dtype=dtype):
                        self.assert_array(self.run_op(name, dtype, arrays, attrs, "--backend", "reference"),
                                          PEERS[name](arrays, attrs), tolerance)

    def test_there_and_back_is_where_it_began(self):
        for norm in "backward", "ortho", "forward":
            x = drawn(7, 3, 30, 2)
            there = self.run_op("fft.fft", "f64", [x], {"norm": norm})
            self.assert_array(self.run_op("fft.ifft", "f64", [there], {"norm": norm}), x, 1e-14)
            for n in 30, 31:
                x = drawn(n, 2, n)
                there = self.run_op("fft.rfft", "f64", [x], {"norm": norm})
                self.assert_array(self.run_op("fft.irfft", "f64", [there], {"norm": norm, "n": n}), x, 1e-14)

    def test_it_gives_what_kilns_own_op_gives(self):
        x = drawn(5, 2, 36)
        self.assert_array(self.run_op("fft.rfft", "f64", [x], {}), self.run_op("rfft", "f64", [x], {}), 1e-13)
        y = drawn(6, 2, 19, 2)
        self.assert_array(self.run_op("fft.irfft", "f64", [y], {}), self.run_op("irfft", "f64", [y], {}), 1e-13)

    def test_one_compilation_transforms_lines_of_all_lengths(self):
        for b, n in (2, 8), (0, 5), (3, 7), (1, 1):
            for name, shape, symbolic in (("fft.fft", [b, n, 2], ["b", "n", 2]), ("fft.rfft", [b, n], ["b", "n"]),
                                          ("fft.irfft", [b, n, 2], ["b", "n", 2])):
                if name == "fft.irfft" and n == 1:
                    continue  # 2 (n - 1) is 0
                x = drawn(n, *shape)
                self.assert_array(self.run_op(name, "f64", [x], {}, shapes=[symbolic]), PEERS[name]([x], {}), 1e-13)

    def test_a_length_of_0_ends_the_run(self):
        told = self.run_failure("fft.rfft", "f32", [([2, 0], [])], shapes=[["b", "n"]])
        self.assertEqual(told, "node 'op': [fft.rfft] the length is 0, expected at least 1")
        told = self.run_failure("fft.irfft", "f32", [([1, 2], [0.0, 0.0])], shapes=[["n", 2]])
        self.assertEqual(told, "node 'op': [fft.irfft] the length is 0, expected at least 1")

    def test_operands_and_attributes_that_do_not_fit_are_told(self):
        for name, shape, attrs, words in (
                ("fft.fft", [4], {}, "[fft.fft] x is [4], expected [..., n, 2]"),
                ("fft.fft", [4, 3], {}, "[fft.fft] x dim 1 and the parts of a complex number must be equal; they are 3 and 2"),
                ("fft.fft", [4, 2], {"dim": 1}, "[fft.fft] dim is 1, expected -1 to 0"),
                ("fft.ifft", [4, 2], {"norm": "both"},
                 "[fft.ifft] norm is 'both', expected 'backward', 'ortho' or 'forward'"),
                ("fft.ifft", [3, 0, 2], {}, "[fft.ifft] x dim 1 is 0, expected at least 1"),
                ("fft.rfft", [], {}, "[fft.rfft] x is [], expected [..., n]"),
                ("fft.rfft", [2, 3], {"dim": -3}, "[fft.rfft] dim is -3, expected -2 to 1"),
                ("fft.irfft", [5, 2], {"n": 10}, "[fft.irfft] x dim 0 and n / 2 + 1 must be equal; they are 5 and 6"),
                ("fft.irfft", [1, 2], {}, "[fft.irfft] n is 0, expected at least 1")):
            told = self.refusal(self.op_graph(name, "f32", [shape], attrs))
            self.assertTrue(told.endswith("node 'op': " + words), told)

    def test_the_second_process_hits_whatever_the_lengths(self):
        for name, shape in ("fft.fft", ["b", "n", 2]), ("fft.rfft", ["b", "n"]), ("fft.irfft", ["b", "n", 2]):
            self.assert_second_process_hits(name, "f32", [shape], {}, ["b=2", "n=12"], ["b=1", "n=5"])


main()
