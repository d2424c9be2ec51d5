"""The trained models of tests/models through each door: a graph, a function of arrays, torch.compile, an ONNX file.

Each has the quality that tests/models says, which PyTorch computed in float64.
"""

import importlib.util
import io
import json
import pathlib

import kiln
import kiln.array_api as xp
import numpy as np
import pytest

MODELS = pathlib.Path(__file__).resolve().parents[3] / "tests/models"


def weights_of(name):
    tensors = kiln.open_tensors(MODELS / name / "weights.safetensors")
    return {key: np.array(np.from_dlpack(each)) for key, each in tensors.items()}


def expected(name):
    return json.loads((MODELS / name / "expected.json").read_text())


def accuracy(run):
    """Of a function of images."""
    images, labels = (np.load(MODELS / f"digits/test_{each}.npy") for each in ("images", "labels"))
    chosen = [np.asarray(run(images[at:at + 125])).argmax(1) for at in range(0, len(images), 125)]
    return float((np.concatenate(chosen) == labels).mean())


def bits_per_character(run, length, batch, start):
    """Of a function of tokens, on a window of the text that was held out."""
    text = np.load(MODELS / "chars/held_out.npy")[start:start + batch * (length + 1)].reshape(batch, length + 1)
    logits = np.asarray(run(np.ascontiguousarray(text[:, :-1])), np.float64)
    logits -= logits.max(-1, keepdims=True)
    likely = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return float(-np.take_along_axis(likely, text[:, 1:, None], -1).mean() / np.log(2))


# A function of arrays.

def digits(image, w):
    x = image
    for i in range(3):
        x = kiln.ops.conv2d(x, w[f"conv{i}.weight"], padding=[1, 1])
        scale, bias, mean, variance = (w[f"norm{i}.{part}"] for part in ("scale", "bias", "mean", "variance"))
        x = kiln.ops.relu(kiln.ops.batch_norm(x, scale, bias, mean, variance, eps=1e-5))
        x = kiln.ops.max_pool2d(x, kernel=[2, 2]) if i < 2 else x
    return xp.reshape(x, (x.shape[0], 256)) @ w["classify.weight"].T + w["classify.bias"]


def normed(x, weight):
    return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * weight


def chars(tokens, w):
    x = kiln.ops.embedding(w["embedding.weight"], tokens)
    batch, length = tokens.shape
    positions = xp.arange(length, dtype=xp.int64)
    for i in range(4):
        def linear(part, x, i=i):
            return x @ w[f"layer{i}.{part}.weight"].T

        def heads(part, count, i=i):
            return xp.permute_dims(xp.reshape(linear(part, y), (batch, length, count, 40)), (0, 2, 1, 3))
        y = normed(x, w[f"layer{i}.attention_norm.weight"])
        q, k = (kiln.ops.rope(heads(*each), positions, theta=1e4) for each in (("query", 4), ("key", 2)))
        mixed = kiln.ops.attention(q, k, heads("value", 2), causal=True)
        x = x + linear("attended", xp.reshape(xp.permute_dims(mixed, (0, 2, 1, 3)), (batch, length, 160)))
        y = normed(x, w[f"layer{i}.feed_norm.weight"])
        gate = linear("gate", y)
        x = x + linear("down", gate / (1 + xp.exp(-gate)) * linear("up", y))
    return normed(x, w["final_norm.weight"]) @ w["head.weight"].T


# torch's modules.

def torch_digits():
    import torch
    layers, before = [], 1
    for i, after in enumerate((16, 32, 64)):
        layers += [torch.nn.Conv2d(before, after, 3, padding=1, bias=False), torch.nn.BatchNorm2d(after),
                   torch.nn.ReLU(), *([torch.nn.MaxPool2d(2)] if i < 2 else [])]
        before = after
    model = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(256, 10)).eval()
    parts = {"weight": "scale", "bias": "bias", "running_mean": "mean", "running_var": "variance"}
    weights, state, seen = weights_of("digits"), {}, {torch.nn.Conv2d: 0, torch.nn.BatchNorm2d: 0}
    for i, layer in enumerate(model):
        for part in layer.state_dict():
            if part == "num_batches_tracked":
                state[f"{i}.{part}"] = torch.tensor(0)
            elif isinstance(layer, torch.nn.Linear):
                state[f"{i}.{part}"] = torch.from_numpy(weights[f"classify.{part}"])
            else:
                said = f"conv{seen[type(layer)]}.{part}" if isinstance(layer, torch.nn.Conv2d) \
                    else f"norm{seen[type(layer)]}.{parts[part]}"
                state[f"{i}.{part}"] = torch.from_numpy(weights[said])
        if type(layer) in seen:
            seen[type(layer)] += 1
    model.load_state_dict(state)
    return model


def torch_chars():
    import torch
    spec = importlib.util.spec_from_file_location("chars_model", MODELS / "chars/model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    weights = weights_of("chars")
    model = module.Model(len(weights["embedding.weight"])).eval()
    model.load_state_dict({name: torch.from_numpy(each) for name, each in weights.items()})
    return model


MODULES = {"digits": torch_digits, "chars": torch_chars}
FUNCTIONS = {"digits": digits, "chars": chars}


def by_graph(name):
    graph = kiln.Graph.from_json((MODELS / name / "graph.json").read_text())
    return kiln.compile(graph).bind(weights_of(name))


def by_function(name):
    run, weights = kiln.jit(FUNCTIONS[name], parameters=("w",)), weights_of(name)
    return lambda x: run(x, weights)


def by_torch(name, **options):
    torch = pytest.importorskip("torch", reason="torch is not installed in this environment")
    import kiln.torch
    torch._dynamo.reset()
    run = torch.compile(MODULES[name](), backend=kiln.torch.backend, fullgraph=True, dynamic=True,
                        options={"strict": True, **options})

    def call(x):
        with torch.no_grad():
            return run(torch.from_numpy(x)).numpy()
    return call


def by_onnx(name):
    torch = pytest.importorskip("torch", reason="torch is not installed in this environment")
    pytest.importorskip("onnx_ir", reason="onnx_ir is not installed in this environment")
    import kiln.onnx
    example = {"digits": torch.zeros(2, 1, 8, 8), "chars": torch.zeros(2, 5, dtype=torch.int64)}[name]
    axes = {"digits": {0: "batch"}, "chars": {0: "batch", 1: "length"}}[name]
    file = io.BytesIO()
    torch.onnx.export(MODULES[name](), (example,), file, dynamo=False, input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": axes})
    session = kiln.onnx.Session(file.getvalue())
    return lambda x: session(x)[0]


# Those of torch are no part of `./dev test`, which does not install it.
FAST = ("graph", "function")
DOORS = {"graph": by_graph, "function": by_function, "torch": by_torch,
         "frozen torch": lambda name: by_torch(name, freeze=True), "onnx": by_onnx}


def every_door(test):
    doors = [pytest.param(door, marks=[pytest.mark.fast] if door in FAST else []) for door in DOORS]
    return pytest.mark.filterwarnings("ignore")(pytest.mark.parametrize("door", doors)(test))


@every_door
def test_digits_are_told_as_well_through_each_door(door):
    assert accuracy(DOORS[door]("digits")) == expected("digits")["accuracy"]


@every_door
def test_characters_are_as_likely_through_each_door(door):
    run = DOORS[door]("chars")
    for window in expected("chars")["windows"]:
        bits = bits_per_character(run, window["length"], window["batch"], window["start"])
        assert bits == pytest.approx(window["bits_per_character"], abs=2e-5)
