"""--backend cuda: artifacts with cubins, their source, and running on the stand-in for a GPU."""

import json
import os
import shutil
import unittest

from harness import BUILD, CHAIN, LINEAR, MODELS, PLUGINS, Case, f32, graph, main, node, read_npy

STANDIN = {"KILN_NVRTC": str(BUILD / "lib" / "libkiln_standin_nvrtc.so"),
           "KILN_LIBCUDA": str(BUILD / "lib" / "libkiln_standin_cuda.so")}
NOWHERE = {"KILN_NVRTC": "/nowhere/libnvrtc.so", "KILN_LIBCUDA": "/nowhere/libcuda.so.1"}
CUDA = ["--backend", "cuda", "--arch", "sm_90"]

needs_compiler = unittest.skipUnless(shutil.which("c++"), "SKIP: no C++ compiler (c++), which stands in for NVRTC")


NO_GPU = ("no NVIDIA driver here", "no NVRTC library was found", "CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_STUB_LIBRARY",
          "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE")


class UsageTest(Case):
    def test_an_unknown_architecture(self):
        message = self.kiln("compile", self.write_graph(CHAIN), "-o", self.file("a.kiln"), "--backend", "cuda", "--arch",
                            "sm_12345", code=2)
        self.assertIn("arch 'sm_12345' of backend cuda is not known; there are native, sm_75", message)

    def test_an_architecture_of_another_backend(self):
        for words in (["--arch", "sm_90"], ["--arch", "sm_90", "--backend", "cpu"]):
            message = self.kiln("compile", self.write_graph(CHAIN), "-o", self.file("a.kiln"), *words, code=2)
            self.assertEqual(message, "--arch is for --backend cuda")

    def test_help_tells_the_options(self):
        for command in ("run", "compile", "inspect"):
            text = self.kiln(command, "--help")
            self.assertIn("cpu|cuda|reference", text)
            self.assertIn("--arch", text)
        self.assertIn("--cuda", self.kiln("inspect", "--help"))


class SourceTest(Case):
    """Needs neither NVRTC nor a GPU."""

    def setUp(self):
        super().setUp()
        self.environment = NOWHERE

    def test_of_a_graph(self):
        text = self.kiln("inspect", self.write_graph(CHAIN), "--cuda")
        self.assertIn("__global__", text)
        self.assertIn("expf(", text)
        self.assertEqual(text.count("typedef long long kiln_i64"), 1)

    def test_stages_share_shared_memory(self):
        softmax = graph([f32("x", "n", 64)], [node("y", "softmax", ["x"])], ["y"])
        text = self.kiln("inspect", self.write_graph(softmax), "--cuda")
        self.assertEqual(text.count("__shared__"), 1)
        self.assertEqual(text.count("*const shared0"), 2)

    def test_the_view_implies_the_backend(self):
        path = self.write_graph(CHAIN)
        self.assertEqual(self.kiln("inspect", path, "--cuda", "--arch", "sm_90"),
                         self.kiln("inspect", path, "--cuda", "--arch", "sm_90", "--backend", "cuda"))

    @needs_compiler
    def test_of_both_models_has_each_kernel_once(self):
        for model in ("digits", "chars"):
            path = MODELS / model / "graph.json"
            text = self.kiln("inspect", path, "--cuda", "--arch", "sm_90")
            self.environment = STANDIN
            self.kiln("compile", path, "-o", self.file("a.kiln"), *CUDA)
            self.environment = NOWHERE
            kernels = json.loads(self.kiln("inspect", self.file("a.kiln"), "--json"))["device_kernels"]
            self.assertEqual(text.count("__global__"), len({kernel["entry"] for kernel in kernels}), model)
            self.assertEqual(text, self.kiln("inspect", self.file("a.kiln"), "--cuda"))

    def test_of_an_artifact_of_another_backend(self):
        self.kiln("compile", self.write_graph(CHAIN), "-o", self.file("a.kiln"))
        self.assertIn("these are of backend cpu", self.kiln("inspect", self.file("a.kiln"), "--cuda", code=1))

    def test_llvm_of_kernels_for_a_gpu(self):
        message = self.kiln("inspect", self.write_graph(CHAIN), "--llvm", *CUDA, code=1)
        self.assertIn("these are of backend cuda", message)


class MissingTest(Case):
    def test_nvrtc(self):
        self.environment = NOWHERE
        message = self.kiln("compile", self.write_graph(CHAIN), "-o", self.file("a.kiln"), *CUDA, code=1)
        self.assertIn("/nowhere/libnvrtc.so", message)
        self.assertIn("KILN_NVRTC", message)

    @needs_compiler
    def test_a_gpu(self):
        self.environment = {"KILN_NVRTC": STANDIN["KILN_NVRTC"]}
        self.kiln("compile", self.write_graph(CHAIN), "-o", self.file("a.kiln"), *CUDA)
        self.assertIn("backend cuda", self.kiln("inspect", self.file("a.kiln")))  # which needs no GPU
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("SKIP: there is an NVIDIA driver here")
        run = ["--random", 1, "--size", "n=2"]
        self.assertIn("cannot open library 'libcuda.so.1'", self.kiln("run", self.file("a.kiln"), *run, code=1))
        native = self.kiln("run", self.write_graph(CHAIN), "--backend", "cuda", *run, code=1)
        self.assertIn("arch 'native' of backend cuda: [cuda] no NVIDIA driver here", native)


class NvrtcTest(Case):
    def test_an_artifact_holds_cubins_and_tells_registers(self):
        path = self.write_graph(LINEAR)
        words = ["compile", path, "-o", self.file("a.kiln"), *CUDA]
        if "no NVRTC library was found" in self.call(BUILD / "bin" / "kiln", *words, code=None).stderr:
            self.skipTest("SKIP: no NVRTC")
        stats = json.loads(self.kiln(*words, "--stats", "-"))
        self.assertFalse(stats["llvm_loaded"])
        self.assertGreater(stats["device_kernels"][0]["registers"], 0)
        description = json.loads(self.kiln("inspect", self.file("a.kiln"), "--json"))
        self.assertEqual((description["backend"], description["target"]), ("cuda", "sm_90"))
        kernel = description["device_kernels"][0]
        self.assertGreater(kernel["registers"], 0)
        self.assertEqual(kernel["spill_bytes"], 0)
        self.assertTrue(kernel["compiler"].startswith("NVRTC "))
        self.assertTrue(kernel["entry"].startswith("kiln_"))
        with open(self.file("a.kiln"), "rb") as file:
            self.assertIn(b"\x7fELF", file.read())
        self.assertIn(kernel["entry"], self.kiln("inspect", self.file("a.kiln"), "--cuda"))


class ModelTest(Case):
    def logits(self, model, graph_input, outputs, *words):
        """The model's logits from `kiln run`."""
        folder = MODELS / model
        self.kiln("run", *words, "--weights", folder / "weights.safetensors", *graph_input, "--output",
                  f"logits={self.file('logits.npy')}")
        shape, values = read_npy(self.file("logits.npy"))
        self.assertEqual(shape[-1], outputs)
        return values

    def check_model(self, model, outputs, graph_input, plugin, *words):
        path = MODELS / model / "graph.json"
        expected = self.logits(model, graph_input, outputs, path, "--backend", "reference")
        self.kiln("compile", path, "-o", self.file("a.kiln"), *words, "--plugin", PLUGINS / plugin)
        actual = self.logits(model, graph_input, outputs, self.file("a.kiln"))
        self.assert_close(actual, expected, 1e-3)

    def check_models(self, *words):
        self.check_model("digits", 10, ["--input", f"image={MODELS}/digits/test_images.npy"], "fold_batch_norm.so", *words)
        sizes = ["--random", 1, "--size", "batch=2", "--size", "length=48"]
        self.check_model("chars", 63, sizes, "fuse_rms_norm.so", *words)

    @needs_compiler
    def test_both_models_on_the_standin(self):
        self.environment = STANDIN
        self.check_models(*CUDA)

    def test_both_models_on_a_gpu(self):
        words = ["run", self.write_graph(CHAIN), "--backend", "cuda", "--random", 1, "--size", "n=2"]
        error = self.call(BUILD / "bin" / "kiln", *words, code=None).stderr
        if any(reason in error for reason in NO_GPU):
            self.skipTest("SKIP: " + error.strip())
        self.check_models("--backend", "cuda")


@needs_compiler
class StandinTest(Case):
    def setUp(self):
        super().setUp()
        self.environment = STANDIN

    def test_a_second_process_needs_no_compiler(self):
        path = self.write_graph(LINEAR)
        run = ["run", path, "--random", 1, "--size", "n=5", *CUDA, "--stats", "-", "--output", "y=" + self.file("y.npy")]
        first = json.loads(self.kiln(*run))
        cold = read_npy(self.file("y.npy"))
        self.assertEqual((first["lookup"], first["kernels_compiled"] > 0), ("MISS", True))
        self.environment = {**STANDIN, "KILN_NVRTC": NOWHERE["KILN_NVRTC"]}
        second = json.loads(self.kiln(*run))
        self.assertEqual((second["lookup"], second["kernels_compiled"]), ("HIT", 0))
        self.assertEqual(read_npy(self.file("y.npy")), cold)

    def test_another_architecture_is_another_record(self):
        path = self.write_graph(CHAIN)
        for arch in ("sm_90", "sm_80"):
            stats = self.stats(path, "--random", 1, "--size", "n=2", "--backend", "cuda", "--arch", arch)
            self.assertEqual((stats["lookup"], stats["kernels_from_cache"]), ("MISS", 0))

    def test_kernels_of_another_nvrtc_are_compiled_anew(self):
        def compiled(note, version):
            """Of a graph with a key of its own, and the kernels that all of these have."""
            noted = json.loads(json.dumps(CHAIN))
            noted["nodes"][0]["annotations"] = {"my.note": {"text": note}}
            self.environment = {**STANDIN, "KILN_STANDIN_NVRTC": version}
            stats = self.stats(self.write_graph(noted), "--random", 1, "--size", "n=2", *CUDA)
            self.assertEqual(stats["lookup"], "MISS")
            return stats["kernels_compiled"], stats["kernels_from_cache"]

        self.assertEqual(compiled("a", "12.4"), (1, 0))
        self.assertEqual(compiled("b", "12.4"), (0, 1))
        self.assertEqual(compiled("c", "12.5"), (1, 0))
        self.assertEqual(compiled("d", "12.4"), (0, 1))
        self.assertEqual(compiled("e", "12.5"), (0, 1))

    def test_another_nvrtc_is_a_miss_that_names_both_and_none_is_opened_for_a_hit(self):
        def look_up(library, version):
            self.environment = {**STANDIN, "KILN_NVRTC": self.file(library), "KILN_STANDIN_NVRTC": version}
            stats = self.stats(path, "--random", 1, "--size", "n=2", *CUDA)
            return stats["lookup"], stats["reason"], stats["kernels_compiled"]

        path = self.write_graph(CHAIN)
        for library in ("old.so", "new.so"):
            shutil.copy(STANDIN["KILN_NVRTC"], self.file(library))
        self.assertEqual(look_up("old.so", "12.4"), ("MISS", "no record", 1))
        # Whoever opened it now would be told another version.
        self.assertEqual(look_up("old.so", "12.5"), ("HIT", "hit", 0))
        self.assertEqual(look_up("new.so", "12.5"),
                         ("MISS", "its kernels were compiled by NVRTC 12.4, and NVRTC 12.5 is here", 1))
        self.assertEqual(look_up("new.so", "12.5"), ("HIT", "hit", 0))
        self.assertEqual(look_up("nowhere.so", "12.5"), ("HIT", "hit", 0))

    def test_the_native_architecture_is_the_device_s(self):
        self.kiln("compile", self.write_graph(CHAIN), "-o", self.file("a.kiln"), "--backend", "cuda")
        self.assertIn("target sm_90", self.kiln("inspect", self.file("a.kiln")))


if __name__ == "__main__":
    main()
