"""Each block against PyTorch's values, in f32 and bf16: compiled in one process, and served from the cache in the next ones.

`blocks_test.py -k NAME` tests one block.
"""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["KILN_SOURCE_DIR"], "tests", "e2e"))

import harness  # noqa: E402
from blocks import ALL, write  # noqa: E402

EXPECTED = pathlib.Path(__file__).resolve().parent / "expected"
TOLERANCE = {"f32": 1e-5, "bf16": 0.02}  # times an output's largest element
MEND = "; ./dev blocks writes expected values anew"


class BlockTest(harness.Case):
    def run_call(self, number, outputs, inputs, *words):
        """Runs a call in a process of its own: (what --stats tells, shape and values of each output)."""
        words = [self.file("graph.json"), "--weights", self.file("weights.safetensors"), *words]
        for name in inputs:
            words += ["--input", f"{name}={self.file(f'inputs{number}.safetensors')}"]
        for name in outputs:
            words += ["--output", f"{name}={self.file(name + '.npy')}"]
        stats = self.stats(*words)
        return stats, {name: harness.read_npy(self.file(name + ".npy")) for name in outputs}

    def assert_hit(self, stats, cold):
        self.assertEqual((stats["lookup"], stats["key"]), ("HIT", cold["key"]))
        self.assertEqual(stats["passes_run"], {})
        self.assertEqual((stats["kernels_compiled"], stats["kernels_from_cache"]), (0, 0))
        self.assertFalse(stats["llvm_loaded"])

    def assert_expected(self, actual, call, tolerance):
        for name, expected in call["outputs"].items():
            with self.subTest(sizes=call["sizes"]):
                self.assert_output(name, actual[name], expected, tolerance)

    def assert_output(self, name, actual, expected, tolerance):
        shape, values = actual
        self.assertEqual(list(shape), expected["shape"], name)
        values, wanted = values[::expected["step"]], expected["values"]
        self.assertEqual(len(values), len(wanted), name)
        if all(isinstance(each, int) for each in wanted):
            self.assertEqual(values, wanted, name)
            return
        allowed = tolerance * max(map(abs, wanted))
        for index, (a, e) in enumerate(zip(values, wanted)):
            self.assertLessEqual(abs(a - e), allowed, f"{name}, element {index * expected['step']}: {a}, PyTorch has {e}")

    def check(self, name, dtype):
        definition, calls = ALL[name], json.loads((EXPECTED / f"{name}.json").read_text())["calls"]
        self.assertEqual([call["sizes"] for call in calls], definition.calls, MEND)
        self.assertEqual([call["digest"] for call in calls], write(name, dtype, self.folder), MEND)
        inputs = definition.made(dtype).arguments
        cold, first = self.run_call(0, calls[0]["outputs"], inputs)
        self.assertEqual(cold["lookup"], "MISS")
        self.assertGreater(cold["kernels_compiled"], 0)
        self.assertTrue(cold["passes_run"])
        for number, call in enumerate(calls):
            warm, results = self.run_call(number, call["outputs"], inputs)
            self.assert_hit(warm, cold)
            if number == 0:
                self.assertEqual(results, first, "a warm run differs from the cold one")
            self.assert_expected(results, call, TOLERANCE[dtype])
        _, oracle = self.run_call(0, calls[0]["outputs"], inputs, "--backend", "reference")
        self.assert_expected(oracle, calls[0], TOLERANCE[dtype])


class FilesTest(unittest.TestCase):
    def test_each_block_has_expected_values_and_these_are_small(self):
        files = list(EXPECTED.iterdir())
        self.assertEqual(sorted(path.name for path in files), sorted(f"{name}.json" for name in ALL))
        self.assertLess(sum(path.stat().st_size for path in files), 150_000)


def add_tests():
    for name in ALL:
        for dtype in TOLERANCE:
            def test(self, name=name, dtype=dtype):
                self.check(name, dtype)
            setattr(BlockTest, f"test_{name}_in_{dtype}", test)


add_tests()

if __name__ == "__main__":
    harness.main()
