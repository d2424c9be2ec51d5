"""kiln plugin new writes, in each language, a folder that builds, passes its test and all checks."""

import re

from folder_case import FolderCase
from harness import PLUGINS, main

KINDS = [(lang, kind) for lang in ("c", "cpp", "rust") for kind in ("pass", "op", "backend")] + [("cpp", "pattern"), ("rust", "pattern")]
UUID = re.compile(r"uuid ([0-9a-f-]{36})")


class NewTest(FolderCase):
    def test_what_it_writes_builds_and_passes_its_test_and_all_checks(self):
        (self.folder / "with a space").mkdir()
        for lang, kind in KINDS:
            with self.subTest(lang=lang, kind=kind):
                name = f"my_{lang}_{kind}"
                folder = self.begin(f"with a space/{name}", lang, kind)
                plugin = self.build(folder, lang)
                what = "pass" if kind == "pattern" else kind
                self.assertIn(f"{what} {name}", self.kiln("plugin", "inspect", plugin))
                self.assertEqual(self.kiln("plugin", "test", folder), f"ok    {name}\n")
                if lang != "c":  # what those in C come from is checked with the plugins that come with Kiln
                    self.assertIn("15 of 15 tests passed, at level 10\n", self.kiln("plugin", "check", plugin))

    def test_nothing_is_left_of_the_templates_name(self):
        for lang, kind in KINDS:
            for path in self.begin(f"my_{lang}_{kind}", lang, kind).rglob("*.*"):
                if path.is_file() and path.parent.name != "kiln":  # the module is the same beside each
                    self.assertIsNone(re.search(r"template|drop_neg|fuse_silu|\bmine\b|copy this|of this folder", path.read_text()), path)

    def test_identities_are_new_each_time(self):
        seen = []
        for name in ("one", "two"):
            told = self.kiln("plugin", "inspect", self.build(self.begin(name, "c", "op"), "c"))
            seen += UUID.findall(told)
        sources = [(self.begin(name, "rust", "op") / f"{name}.rs").read_text() for name in ("three", "four")]
        self.assertEqual(len(set(re.findall(r"\[0x[0-9a-fx, ]{92,}\]", "".join(sources)))), 4)
        seen += UUID.findall(self.kiln("plugin", "inspect", PLUGINS / "op_template.so"))
        self.assertEqual((len(seen), len(set(seen))), (12, 12))

    def test_one_more_identity_is_printed_as_the_source_writes_it(self):
        seen = set()
        for lang, ends in (("c", "{}"), ("cpp", "{}"), ("rust", "[]")):
            told = self.kiln("plugin", "uuid", "--lang", lang).strip()
            self.assertEqual((told[0] + told[-1], len(re.findall("0x[0-9a-f]{2}", told))), (ends, 16))
            seen.add(told)
        self.assertEqual(len(seen), 3)

    def test_what_is_not_there_is_refused_by_name(self):
        for words, expected in (
                (["--lang", "ruby"], "--lang: there are no templates in 'ruby'; there are some in c, cpp and rust"),
                (["--kind", "tool"], "--kind: there is no template of a 'tool' in cpp; there are: pass, pattern, op, backend"),
                (["--kind", "pattern", "--lang", "c"],
                 "--kind: there is no template of a 'pattern' in c; there are: pass, op, backend")):
            self.assertEqual(self.kiln("plugin", "new", self.file("p"), *words, code=2), expected)
        self.assertFalse((self.folder / "p").exists())

    def test_a_name_that_no_source_can_have_is_refused(self):
        for name in ("a-b", "1st", "x" * 41):
            self.assertIn(f"'{name}' is no name of a plugin", self.kiln("plugin", "new", self.file(name), code=2))
        self.assertIn("'kiln' is the module that a plugin in Rust has beside it",
                      self.kiln("plugin", "new", self.file("kiln"), "--lang", "rust", code=2))

    def test_a_folder_with_something_in_it_stays_as_it_is(self):
        folder = self.begin("p", "cpp", "pass")
        (folder / "p.cpp").write_text("mine")
        self.assertIn("not empty", self.kiln("plugin", "new", folder, code=1))
        self.assertEqual((folder / "p.cpp").read_text(), "mine")


if __name__ == "__main__":
    main()
