"""docs/passes.md: each pass that breaks an invariant there ends in the line that the page has below it."""

import re
import subprocess

from harness import SOURCE, Case, f32, graph, main, node

PAGE = (SOURCE / "docs" / "passes.md").read_text()
GRAPH = graph([f32("x", "n")], [node("a", "neg", ["x"]), node("y", "exp", ["a"])], ["y"])

PASS = """
static uint64_t rewrite_{name}(Rewriter &graph) {{
{code}
  return 1;
}}
static constexpr Definition {name} = {{"{name}", "1", {{0x5c, {number}}}, KILN_STAGE_POST_GRAD, rewrite_{name}}};
"""
BEGIN = """#include <kiln/pass.hpp>
#include <stdexcept>
KILN_PLUGIN_NOTE(0, 0, "broken0");
using namespace kiln::pass;
"""
END = "const kiln_plugin *kiln_plugin_entry_v1(void) {{ return kiln::pass::plugin<{names}>(); }}\n"


class PassesPageTest(Case):
    def test_each_example_ends_in_its_line(self):
        section = PAGE[PAGE.index("## Invariants"):]
        examples = re.findall(r"```cpp\n(.*?)```\n\n    (.*?)\n", section, re.DOTALL)
        self.assertEqual((len(examples), section.count("```cpp")), (10, 10))
        names = [f"broken{i}" for i in range(len(examples))]
        passes = [PASS.format(name=name, code=code, number=i) for i, (name, (code, _)) in enumerate(zip(names, examples))]
        source, plugin = self.folder / "broken.cpp", self.folder / "broken.so"
        source.write_text(BEGIN + "".join(passes) + END.format(names=", ".join(names)))
        subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-shared", "-fPIC", "-I", SOURCE / "abi" / "include", source,
                        "-o", plugin], check=True)
        path = self.write_graph(GRAPH)
        for name, (code, line) in zip(names, examples):
            words = ["run", path, "--plugin", plugin, "--passes", name, "--random", 1, "--size", "n=5"]
            with self.subTest(code):
                if line.startswith("y "):
                    self.assertTrue(self.kiln(*words).startswith(line))
                else:
                    told = self.kiln(*words, code=1)
                    self.assertEqual(re.sub("broken[0-9]+", "broken", told), line)


if __name__ == "__main__":
    main()
