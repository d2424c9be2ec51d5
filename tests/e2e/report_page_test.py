"""kiln compile --report: the page, and where Chromium is installed, opening it and clicking on all that can be clicked."""

import json
import os
import re
import shutil
import subprocess

from harness import PLUGINS, Case, f32, graph, main, node
from seeing_test import LATE, MODEL, NORM, TWICE, WHY

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)

# Goes behind the page's own script: clicks and types as a person would, then tells what there is, to a frame around, too.
CLICKS = """<script>
window.errors = [];
window.addEventListener("error", event => errors.push(String(event.message)));
window.addEventListener("unhandledrejection", event => errors.push(String(event.reason)));
const all = selector => document.querySelectorAll(selector).length;
const texts = selector => [...document.querySelectorAll(selector)].map(element => element.textContent);
const wait = () => new Promise(resolve => setTimeout(resolve, 200));
function tell(told) {
  document.body.append(Object.assign(document.createElement("script"),
    {type: "application/told", textContent: JSON.stringify(told).replaceAll("<", "&lt;")}));
  if (parent !== window) parent.postMessage(JSON.stringify(told), "*");
}
(async () => {
  for (let round = 0; round < 3; ++round) {  // what is in one is made when it opens
    document.querySelectorAll("details:not([open]) > summary").forEach(summary => summary.click());
    await wait();
  }
  const after = [...document.querySelectorAll("#passes details")].filter(d => d.firstChild.textContent === "After");
  const told = {errors, sections: texts("h2"), passes: all(".pass"), diff: texts("pre.diff").join(),
    after: after.map(d => d.querySelector("pre").textContent), ir: texts("#kernels pre").join(""), kernels: all(".kernel"),
    lookup: texts("#lookup").join(), copies: texts("#memory td"), fits: document.documentElement.scrollWidth <= window.innerWidth,
    width: window.innerWidth, background: getComputedStyle(document.body).backgroundColor};
  const canvas = document.querySelector("canvas"), pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  told.paint = pixels.data.some(Boolean);
  const number = document.querySelector("input[type=number]"), before = texts("#memory p").join();
  if (number) {
    number.value = 4096;
    number.dispatchEvent(new Event("input"));
  }
  told.resized = texts("#memory p").join() !== before;
  const search = document.querySelector("input[type=search]");
  search.value = "no such node";
  search.dispatchEvent(new Event("input"));
  told.left = all(".kernel");
  tell(told);
})().catch(error => tell({errors: [String(error)]}));
</script>"""
FRAME = """<!doctype html><body style="margin: 0"><script>
addEventListener("message", event => document.body.append(Object.assign(document.createElement("script"),
  {type: "application/told", textContent: event.data.replaceAll("<", "&lt;")})));
</script><iframe src="page.html" style="width: 390px; height: 800px; border: 0"></iframe>"""


class ReportPageTest(Case):
    def page(self, value, *words):
        self.kiln("compile", self.write_graph(value), "-o", self.file("a.kiln"), "--report", self.file("out.html"), *words)
        return (self.folder / "out.html").read_text()

    def told(self, page, width=1200, flags=()):
        """What the page, clicked on in Chromium without a network, tells of itself."""
        if CHROMIUM is None:
            self.skipTest("SKIP: no Chromium")
        (self.folder / "page.html").write_text(page.replace("</body>", CLICKS + "</body>"))
        (self.folder / "frame.html").write_text(FRAME)
        file = "frame.html" if width == 390 else "page.html"
        done = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self.folder}/profile", f"--window-size={width},900",
             "--virtual-time-budget=20000", *flags, "--dump-dom", "file://" + self.file(file)],
            capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "HOME": str(self.folder)})
        found = re.search(r'<script type="application/told">(.*?)</script>', done.stdout, re.DOTALL)
        self.assertIsNotNone(found, done.stderr[-2000:] + done.stdout[-2000:])
        return json.loads(found.group(1).replace("&lt;", "<"))

    def test_the_page_needs_nothing_else_and_holds_what_was_compiled(self):
        page = self.page(MODEL)
        self.assertIn('"title":"out",', page)
        self.assertNotRegex(page, r'(src|href)="(?!#)')
        self.assertNotRegex(page, r"https?://")
        data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL).group(1))
        self.assertEqual(data["lookup"]["report"]["lookup"], "MISS")
        self.assertIn("graph", [component["name"] for component in data["lookup"]["report"]["components"]])
        self.assertEqual(data["report"]["reason"], "report_html")
        nodes = [n["node"] for plan in data["steps"]["plans"] for step in plan["steps"] for n in step.get("nodes", [])]
        self.assertEqual(sorted(set(nodes)), ["a", "b", "y"])
        self.assertTrue(all(kernel["ir"] and "define" in kernel["code"] for kernel in data["kernels"]))

    def test_a_lookup_that_misses_tells_what_differs_and_one_that_hits_what_it_is(self):
        self.kiln("run", self.write_graph(TWICE), "--random", "1", "--size", "n=2")
        self.assertIn('"lookup":{"report":{"lookup":"HIT"', self.page(TWICE))
        page = self.page(TWICE, "--option", "fuse=false")
        self.assertIn("component 'options' differs from the nearest record", page)
        if CHROMIUM:
            self.assertIn("options (differs from the nearest record)", self.told(page)["lookup"])

    def test_a_run_writes_it_by_an_option(self):
        self.kiln("run", self.write_graph(TWICE), "--random", "1", "--size", "n=2", "--option", f"report_html={self.file('run.html')}")
        page = (self.folder / "run.html").read_text()
        self.assertIn('"title":"run",', page)
        self.assertEqual(self.told(page)["errors"], [])

    def test_copies_that_are_left_stand_in_the_memory_plan(self):
        page = self.page(LATE)
        told = self.told(page, 390)
        self.assertEqual([told["errors"], told["fits"]], [[], True])
        self.assertEqual(told["copies"][1:], ["w [copy_]", "512 B", WHY])

    def test_text_of_a_graph_cannot_become_a_part_of_the_page(self):
        evil = json.loads(json.dumps(TWICE).replace('"a"', '"</script><script>document.title=1//"'))
        page = self.page(evil)
        self.assertEqual(page.count("</script>"), 2)  # its own
        told = self.told(page)
        self.assertEqual(told["errors"], [])
        self.assertIn("</script>", told["diff"])

    def test_all_can_be_opened_on_a_screen_and_on_a_phone(self):
        page = self.page(NORM, "--plugin", PLUGINS / "fuse_rms_norm.so")
        expected = self.kiln("inspect", self.write_graph(NORM), "--plugin", PLUGINS / "fuse_rms_norm.so", "--after",
                             "fuse_rms_norm")
        dark, backgrounds = ["--blink-settings=preferredColorScheme=0"], []
        for width, flags in (1200, []), (390, []), (1200, dark):
            told = self.told(page, width, flags)
            self.assertEqual(told["errors"], [])
            self.assertEqual(told["sections"], ["Request", "Lookup", "Passes", "Regions", "Kernels", "Memory"])
            self.assertTrue(told["fits"], f"wider than {told['width']}")
            self.assertEqual(told["passes"], 2)  # fuse_rms_norm and decompose
            self.assertIn("+", told["diff"])
            self.assertEqual(told["after"][0], expected)  # made of the text before and the difference
            self.assertIn("define", told["ir"])
            self.assertEqual([told["kernels"] > 0, told["left"]], [True, 0])
            backgrounds.append(told["background"])
        self.assertNotEqual(backgrounds[0], backgrounds[2])

    def test_ten_thousand_nodes(self):
        ops = ["sin", "neg", "abs", "tanh"]
        nodes = [node(f"n{i}", ops[i % 4], [f"n{i - 1}" if i else "x"]) if i % 50 else
                 node(f"n{i}", "softmax", [f"n{i - 1}" if i else "x"], dim=1) for i in range(10000)]
        page = self.page(graph([f32("x", "n", 64)], nodes, ["n9999"]))
        self.assertLess(len(page), 64 << 20)
        told = self.told(page)
        self.assertEqual([told["errors"], told["fits"], told["paint"], told["resized"]], [[], True, True, True])


if __name__ == "__main__":
    main()
