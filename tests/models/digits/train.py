"""Trains the digits classifier and writes everything this folder holds beside the scripts.

Usage: python train.py          (needs numpy, safetensors, scikit-learn and torch)

The run is deterministic for one version of PyTorch on one kind of processor.
"""

import json
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))
from graphs import Graph  # noqa: E402

SEED = 20240
HELD_OUT = 500
EPOCHS = 60
BATCH = 64
CHANNELS = [1, 16, 32, 64]
POOLED = (True, True, False)  # whether a block ends in a 2x2 maximum pool
EPSILON = 1e-5


class Classifier(nn.Module):
    """Three blocks of convolution, batch norm and relu, then one linear layer on 64 x 2 x 2."""

    def __init__(self):
        super().__init__()
        for index, (before, after) in enumerate(zip(CHANNELS, CHANNELS[1:])):
            # The batch norm that follows makes a bias of the convolution redundant.
            self.add_module(f"conv{index}", nn.Conv2d(before, after, 3, padding=1, bias=False))
            self.add_module(f"norm{index}", nn.BatchNorm2d(after, eps=EPSILON))
        self.classify = nn.Linear(CHANNELS[-1] * 2 * 2, 10)

    def forward(self, x):
        for index, pooled in enumerate(POOLED):
            x = getattr(self, f"conv{index}")(x)
            x = F.relu(getattr(self, f"norm{index}")(x))
            if pooled:
                x = F.max_pool2d(x, 2)
        return self.classify(x.flatten(1))


def weights_of(model):
    """The model's tensors under the names that the graph's parameters bear."""
    renamed = {"weight": "scale", "bias": "bias", "running_mean": "mean", "running_var": "variance"}
    weights = {}
    for name, tensor in model.state_dict().items():
        layer, part = name.split(".")
        if part == "num_batches_tracked":
            continue
        if layer.startswith("norm"):
            part = renamed[part]
        weights[f"{layer}.{part}"] = tensor.detach().float().contiguous()
    return weights


def export(weights, path):
    """Writes the inference graph; convolution, norm and relu stay separate nodes."""
    graph = Graph({"batch": {"min": 0, "max": 4096, "hint": 64}})
    x = graph.input("image", "f32", ["batch", 1, 8, 8])
    graph.parameters(weights)
    for index, pooled in enumerate(POOLED):
        x = graph.node(f"conv{index}", "conv2d", x, f"conv{index}.weight", padding=[1, 1])
        norm = [f"norm{index}.{part}" for part in ("scale", "bias", "mean", "variance")]
        x = graph.node(f"norm{index}", "batch_norm", x, *norm, eps=EPSILON)
        x = graph.node(f"relu{index}", "relu", x)
        if pooled:
            x = graph.node(f"pool{index}", "max_pool2d", x, kernel=[2, 2])
    x = graph.node("flat", "reshape", x, shape=["batch", CHANNELS[-1] * 2 * 2])
    x = graph.node("scores", "linear", x, "classify.weight", "classify.bias")
    graph.output("logits", x)
    graph.write(path)


def shifted(images):
    """Moves every image by -1, 0 or 1 pixels each way, with zeros coming in at the edges."""
    padded = F.pad(images, (1, 1, 1, 1))
    down, right = torch.randint(0, 3, (2, len(images)))
    rows = down[:, None, None] + torch.arange(8)[None, :, None]
    columns = right[:, None, None] + torch.arange(8)[None, None, :]
    return padded[torch.arange(len(images))[:, None, None], 0, rows, columns][:, None]


def train(images, labels):
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    steps = EPOCHS * (len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    for epoch in range(EPOCHS):
        order = torch.randperm(len(images))
        total = 0.0
        for chosen in order.split(BATCH):
            if len(chosen) < BATCH:
                break
            # Half of the images are shown as they are: the held-out ones are centred as well.
            moved = torch.rand(len(chosen), 1, 1, 1) < 0.5
            batch = torch.where(moved, shifted(images[chosen]), images[chosen])
            loss = F.cross_entropy(model(batch), labels[chosen], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1:2}  loss {total / (len(images) // BATCH):.4f}", flush=True)
    return model.eval()


def main():
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(2)

    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None]  # the pixels are 0 .. 16
    labels = digits.target.astype(np.int64)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=HELD_OUT, random_state=SEED, stratify=labels)

    model = train(torch.from_numpy(train_images), torch.from_numpy(train_labels))
    weights = weights_of(model)
    save_file(weights, FOLDER / "weights.safetensors")
    np.save(FOLDER / "test_images.npy", np.ascontiguousarray(test_images))
    np.save(FOLDER / "test_labels.npy", test_labels)
    export(weights, FOLDER / "graph.json")

    with torch.no_grad():
        logits = model.double()(torch.from_numpy(test_images).double()).numpy()
    correct = int((logits.argmax(1) == test_labels).sum())
    expected = {"accuracy": correct / len(test_labels), "count": len(test_labels)}
    (FOLDER / "expected.json").write_text(json.dumps(expected) + "\n", encoding="utf-8")
    print(f"{sum(w.numel() for w in weights.values())} values in the weights; {expected}")


if __name__ == "__main__":
    main()
