"""The benchmark: every figure is measured, briefly. What it then says is of no worth; that it says something is."""

import json
import re
import subprocess

from harness import BUILD, SOURCE, Case, main


class BenchTest(Case):
    def test_every_figure_gives_a_value(self):
        figures = {name for file in (SOURCE / "bench").glob("*.cpp")
                   for name in re.findall(r"^KILN_FIGURE\((\w+)\)", file.read_text(), re.M)}
        told = self.folder / "figures.json"
        done = subprocess.run([BUILD / "bin" / "kiln_bench", "--brief", "--json", told], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        results = json.loads(told.read_text())
        self.assertTrue(results["brief"])
        self.assertEqual({result["name"] for result in results["results"]}, figures)
        for result in results["results"]:
            if "skipped" in result:
                self.assertRegex(result["name"], "^cuda_", "only what needs a GPU is skipped")
                continue
            self.assertRegex(result["unit"], r"\w")
            self.assertIsInstance(result["value"], (int, float), result["name"])

    def test_a_figure_that_is_not_there_is_wrong_use(self):
        done = subprocess.run([BUILD / "bin" / "kiln_bench", "no_such_figure"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no figure", done.stderr)


if __name__ == "__main__":
    main()
