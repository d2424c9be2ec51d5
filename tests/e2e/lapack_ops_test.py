"""The ops that LAPACK runs, on their samples and against elimination and Cholesky's formula in Python's floats."""

import math

from harness import graph, main, node, typed
from op_case import TOLERANCE, OpCase, drawn


def matrices(shape, values):
    """The stack of matrices [..., rows, columns], as lists of rows."""
    rows, columns = shape[-2:]
    return [[values[(m * rows + i) * columns:(m * rows + i + 1) * columns] for i in range(rows)]
            for m in range(math.prod(shape[:-2]))]


def eliminate(a, b):
    """x with a x = b by Gauss and Jordan's elimination, the largest pivot of each column first."""
    a, b = [list(row) for row in a], [list(row) for row in b]
    for c in range(len(a)):
        pivot = max(range(c, len(a)), key=lambda r: abs(a[r][c]))
        a[c], a[pivot], b[c], b[pivot] = a[pivot], a[c], b[pivot], b[c]
        for r in range(len(a)):
            if r != c:
                factor = a[r][c] / a[c][c]
                a[r] = [x - factor * y for x, y in zip(a[r], a[c])]
                b[r] = [x - factor * y for x, y in zip(b[r], b[c])]
    return [[x / a[r][r] for x in b[r]] for r in range(len(a))]


def solve(arrays, _):
    (a_shape, a), (shape, b) = arrays
    stack = matrices(a_shape, a)
    columns = matrices(shape if len(shape) == len(a_shape) else [*shape, 1], b)
    return shape, [x for left, right in zip(stack, columns) for row in eliminate(left, right) for x in row]


def cholesky(arrays, attrs):
    (shape, values), = arrays
    made = []
    for a in matrices(shape, values):
        lower = [[0.0] * len(a) for _ in a]
        for i in range(len(a)):
            for j in range(i + 1):
                rest = a[i][j] - sum(x * y for x, y in zip(lower[i][:j], lower[j]))
                lower[i][j] = math.sqrt(rest + attrs.get("jitter", 0)) if i == j else rest / lower[j][j]
        made += [x for row in lower for x in row]
    return shape, made


class LapackOpsTest(OpCase):
    NAME, PACKAGE = "lapack_ops", "liblapacke-dev"
    # Matrices of few rows that are drawn lose a few digits.
    TOLERANCES = {"f32": 2e-4, "f64": 1e-11}

    def test_solutions_are_those_of_elimination_in_every_mode(self):
        self.check_samples("lapack.solve", solve, self.TOLERANCES)

    def test_factors_are_those_of_the_formula_in_every_mode(self):
        self.check_samples("lapack.cholesky", cholesky, self.TOLERANCES)

    def test_larger_systems_are_solved(self):
        for dtype in TOLERANCE:
            arrays = [drawn(1, 2, 40, 40), drawn(2, 2, 40, 5)]
            arrays[0][1][::41] = [8.0] * len(arrays[0][1][::41])
            self.assert_array(self.run_op("lapack.solve", dtype, arrays, {}), solve(arrays, {}), TOLERANCE[dtype])

    def test_rows_are_exchanged_where_a_pivot_is_zero(self):
        swap = [([2, 2], [0.0, 1.0, 1.0, 0.0]), ([2], [3.0, 4.0])]
        self.assertEqual(self.run_op("lapack.solve", "f64", swap, {}), ([2], [4.0, 3.0]))

    def test_one_compilation_solves_systems_of_all_sizes(self):
        for m, n, k in (1, 3, 2), (4, 2, 1), (0, 3, 2), (2, 0, 1), (2, 5, 0):
            arrays = [drawn(n, m, n, n), drawn(k, m, n, k)]
            solved = self.run_op("lapack.solve", "f64", arrays, {}, shapes=[["m", "n", "n"], ["m", "n", "k"]])
            self.assert_array(solved, solve(arrays, {}), 1e-11)

    def test_what_lies_otherwise_is_given_by_rows(self):
        a, b = drawn(3, 4, 4), drawn(4, 4, 2)
        # The array that a is the transpose of, by strides and by a node.
        turned = [a[1][4 * j + i] for i in range(4) for j in range(4)]
        by_strides = {"name": "x0", "type": {"dtype": "f64", "shape": [4, 4], "strides": [1, 4]}}
        whole = graph([by_strides, typed("f64", "x1", 4, 2)], [node("y", "lapack.solve", ["x0", "x1"])], ["y"])
        by_node = graph([typed("f64", "x0", 4, 4), typed("f64", "x1", 4, 2)],
                        [node("t", "permute", ["x0"], dims=[1, 0]), node("y", "lapack.solve", ["t", "x1"])], ["y"])
        for value, values in (whole, a[1]), (by_node, turned):
            self.op_graph = lambda *_, given=value: given
            shape, minus = self.run_op("lapack.solve", "f64", [([4, 4], values), b], {})
            self.assert_array((shape, [-x for x in minus]), solve([a, b], {}), 1e-11)

    def test_a_singular_matrix_ends_the_run_and_is_named(self):
        one, flat = [1.0, 0.0, 0.0, 1.0], [1.0, 2.0, 2.0, 4.0]
        for dtype in TOLERANCE:
            told = self.run_failure("lapack.solve", dtype, [([2, 2], flat), ([2], [1.0, 1.0])])
            self.assertEqual(told, "node 'op': [lapack.solve] a is singular: pivot 2 of 2 is 0")
            told = self.run_failure("lapack.solve", dtype, [([2, 3, 2, 2], one * 4 + flat + one), ([2, 3, 2, 1], [1.0] * 12)])
            self.assertEqual(told, "node 'op': [lapack.solve] a[1, 1] is singular: pivot 2 of 2 is 0")
        told = self.run_failure("lapack.solve", "f64", [([1, 1], [0.0]), ([1], [1.0])])
        self.assertEqual(told, "node 'op': [lapack.solve] a is singular: pivot 1 of 1 is 0")

    def test_a_nan_stays_in_its_own_system(self):
        arrays = [([2, 1, 1], [math.nan, 2.0]), ([2, 1], [1.0, 1.0])]
        _, (first, second) = self.run_op("lapack.solve", "f64", arrays, {})
        self.assertTrue(math.isnan(first))
        self.assertEqual(second, 0.5)

    def test_a_matrix_that_is_not_positive_definite_ends_the_run_and_is_named(self):
        one, saddle = [1.0, 0.0, 0.0, 1.0], [1.0, 2.0, 2.0, 1.0]
        told = self.run_failure("lapack.cholesky", "f32", [([3, 2, 2], one + one + saddle)])
        self.assertEqual(told, "node 'op': [lapack.cholesky] a[2] is not positive definite: its leading minor of order 2 is not positive")
        for bad in 0.0, -1.0, math.nan:
            told = self.run_failure("lapack.cholesky", "f64", [([2, 2], [bad, 0.0, 0.0, 1.0])])
            self.assertIn("[lapack.cholesky] a is not positive definite: its leading minor of order 1 is not positive", told)

    def test_the_upper_triangle_is_not_read_and_jitter_joins_the_diagonal(self):
        above = [0.0, math.nan, 0.0, 0.0]
        self.assertEqual(self.run_op("lapack.cholesky", "f64", [([2, 2], above)], {"jitter": 4.0}),
                         ([2, 2], [2.0, 0.0, 0.0, 2.0]))

    def test_shapes_that_do_not_fit_are_told(self):
        for a, b, words in (
                ([3], [3], "[lapack.solve] a is [3], expected [..., n, n]"),
                ([2, 3], [2, 1], "[lapack.solve] a dim 0 and a dim 1 must be equal; they are 2 and 3"),
                ([3, 3], [2, 1], "[lapack.solve] a dim 0 and b dim 0 must be equal; they are 3 and 2"),
                ([5, "n", "n"], [4, "n", 1], "[lapack.solve] a dim 0 and b dim 0 must be equal; they are 5 and 4"),
                (["m", 3, 3], [3], "[lapack.solve] a is [m, 3, 3] and b [3], expected [..., n, n] and [..., n, k] or [..., n]")):
            self.assertIn(words, self.refusal(self.op_graph("lapack.solve", "f32", [a, b], {})))
        self.assertIn("[lapack.cholesky] a is [], expected [..., n, n]",
                      self.refusal(self.op_graph("lapack.cholesky", "f32", [[]], {})))
        mixed = graph([typed("f32", "a", 2, 2), typed("f64", "b", 2)], [node("y", "lapack.solve", ["a", "b"])], ["y"])
        self.assertIn("[lapack.solve]", self.refusal(mixed))

    def test_sizes_that_do_not_fit_end_the_run(self):
        arrays = [([3, 3], [1.0] * 9), ([2], [1.0] * 2)]
        self.assertIn("a dim 0 and b dim 0 must be equal",
                      self.run_failure("lapack.solve", "f32", arrays, shapes=[["n", "n"], ["k"]]))

    def test_the_second_process_hits_whatever_the_sizes(self):
        self.assert_second_process_hits("lapack.solve", "f64", [["m", "n", "n"], ["m", "n", 2]], {}, ["m=2", "n=3"],
                                        ["m=1", "n=5"])
        self.assert_second_process_hits("lapack.cholesky", "f32", [["n", "n"]], {"jitter": 16.0}, ["n=3"], ["n=4"])

    def test_what_it_links_is_told(self):
        told = self.kiln("plugin", "inspect", self.plugin)
        self.assertIn("links liblapacke.so.3", told)
        self.assertRegex(told, r"\nop lapack.solve  version 1 of plugin lapack_ops, uuid f3d3efd0-\S+, file [0-9a-f]+\n")


main()
