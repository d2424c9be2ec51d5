"""Wrong use: one clear line on stderr and exit code 2; help everywhere."""

from harness import CHAIN, LINEAR, SOURCE, Case, main

COMMANDS = ["run", "compile", "inspect", "passes", "ops", "options", "bench", "cache", "pack", "unpack", "plugin",
            "version"]


class UsageTest(Case):
    def refused(self, *words):
        return self.kiln(*words, code=2)

    def test_help_lists_the_commands(self):
        text = self.kiln("--help")
        for command in COMMANDS:
            self.assertIn(f"  {command}", text)

    def test_each_command_has_help(self):
        for command in COMMANDS:
            self.assertTrue(self.kiln(command, "--help").startswith(f"usage: kiln {command}"))

    def test_no_command(self):
        self.assertIn("no command", self.refused())

    def test_a_near_command_is_suggested(self):
        self.assertEqual(self.refused("inspekt"), "unknown command 'inspekt' (did you mean 'inspect'?)")

    def test_a_near_flag_is_suggested(self):
        self.assertEqual(self.refused("run", "g.json", "--wieghts", "f"),
                         "unknown flag '--wieghts' (did you mean '--weights'?)")

    def test_a_flag_of_another_command_is_unknown(self):
        self.assertIn("unknown flag '--input'", self.refused("compile", "g.json", "--input", "x=f"))

    def test_a_flag_without_its_value(self):
        self.assertEqual(self.refused("run", "g.json", "--cpu"), "--cpu needs a value: NAME")

    def test_a_switch_with_a_value(self):
        self.assertEqual(self.refused("version", "--json=1"), "--json takes no value")

    def test_a_flag_twice(self):
        self.assertEqual(self.refused("run", "g.json", "--cpu", "v3", "--cpu", "v4"), "--cpu is given twice")

    def test_no_operand(self):
        self.assertEqual(self.refused("run"), "missing operand: GRAPH|ARTIFACT")

    def test_too_many_operands(self):
        self.assertEqual(self.refused("run", "a.json", "b.json"), "unexpected operand 'b.json'")

    def test_an_input_without_a_name(self):
        self.assertEqual(self.refused("run", self.write_graph(CHAIN), "--input", "x.npy"),
                         "--input: 'x.npy' is not NAME=VALUE")

    def test_an_input_that_the_graph_lacks(self):
        self.assertIn("the graph has no 'z'", self.refused("run", self.write_graph(CHAIN), "--input", "z=x.npy"))

    def test_an_output_that_the_graph_lacks(self):
        path = self.write_graph(CHAIN)
        self.assertIn("--output: the graph has no 'yy' (did you mean 'y'?)",
                      self.refused("run", path, "--random", 1, "--size", "n=1", "--output", "yy=f.npy"))

    def test_an_input_that_is_missing(self):
        self.assertEqual(self.refused("run", self.write_graph(CHAIN)),
                         "'x' f32 [n, 3] is not given; give --input x=F.npy, or --random SEED")

    def test_weights_that_are_missing(self):
        self.assertIn("--input x=F.npy", self.refused("run", self.write_graph(LINEAR)))

    def test_a_size_that_is_not_known(self):
        self.assertIn("--size NAME=N", self.refused("run", self.write_graph(CHAIN), "--random", 1))

    def test_a_size_that_is_no_number(self):
        self.assertEqual(self.refused("run", self.write_graph(CHAIN), "--random", 1, "--size", "n=many"),
                         "--size n: 'many' is not an integer from 0 to 9223372036854775807")

    def test_a_seed_that_is_no_number(self):
        self.assertIn("--random: 'x'", self.refused("run", self.write_graph(CHAIN), "--random", "x"))

    def test_no_threads(self):
        self.assertEqual(self.refused("run", self.write_graph(CHAIN), "--threads", "0"),
                         "--threads: '0' is not an integer from 1 to 4294967295")

    def test_more_threads_than_can_be_counted(self):
        for count in (2**32, 10**20):
            self.assertEqual(self.refused("run", self.write_graph(CHAIN), "--threads", count),
                             f"--threads: '{count}' is not an integer from 1 to 4294967295")
            self.environment["KILN_THREADS"] = str(count)
            self.assertEqual(self.kiln("run", self.write_graph(CHAIN), code=1),
                             f"KILN_THREADS is '{count}'; expected a number from 1 to 4294967295")
            del self.environment["KILN_THREADS"]

    def test_two_views_at_once(self):
        self.assertIn("exclude each other", self.refused("inspect", self.write_graph(CHAIN), "--dot", "--asm"))

    def test_a_cpu_for_a_backend_that_generates_no_code_for_it(self):
        path = self.write_graph(CHAIN)
        for backend in ("reference", "cuda"):
            self.assertEqual(self.refused("compile", path, "-o", self.file("a.kiln"), "--backend", backend, "--cpu", "v3"),
                             "--cpu is for --backend cpu")

    def test_a_path_with_control_characters(self):
        self.assertEqual(self.kiln("run", self.file("a\nb\x1b[31m.json"), code=1),
                         self.file("a\\x0ab\\x1b[31m.json") + ": No such file or directory")
        self.assertEqual(self.kiln("run", self.file("\u009b31m\u00e9.json"), code=1),  # C1 characters, but letters stay
                         self.file("\\xc2\\x9b31m\u00e9.json") + ": No such file or directory")
        self.assertIn("c\\x0ad.kiln: ", self.kiln("compile", self.write_graph(CHAIN), "-o", self.file("c\nd.kiln")))

    def test_an_artifact_without_a_place(self):
        self.assertIn("-o ARTIFACT", self.refused("compile", self.write_graph(CHAIN)))

    def test_an_unknown_verb(self):
        self.assertIn("did you mean 'stats'?", self.refused("cache", "stat"))
        self.assertIn("did you mean 'inspect'?", self.refused("plugin", "inspct", "p.so"))

    def test_the_developer_script_names_an_unknown_verb(self):
        done = self.call(SOURCE / "dev", "tset", code=2)
        self.assertEqual(done.stderr, "dev: unknown verb 'tset'; ./dev --help lists them\n")


if __name__ == "__main__":
    main()
