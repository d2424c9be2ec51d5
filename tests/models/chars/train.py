"""Trains the character model and writes everything this folder holds beside the scripts.

Usage: python train.py [text]          (needs numpy, safetensors and torch)

`text` holds the King James Bible with one verse per line, each after its reference ("Ge1:1 In the
beginning ..."). Without it the program `bible` of the Debian package bible-kjv is asked.

The run is deterministic for one version of PyTorch on one kind of processor.
"""

import json
import math
import pathlib
import re
import subprocess
import sys
import time

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from model import Model, export

FOLDER = pathlib.Path(__file__).resolve().parent
SEED = 1611
LENGTH = 256
BATCH = 8
STEPS = 4500
WARM_UP = 150
RATE = 3e-3
HELD_OUT_BOOKS = ("Ruth", "Jonah", "Phi", "Jas", "1Jn")  # Phi is Philippians


def read_text(path):
    """Returns the text to train on and the held-out one: a verse per line, chapters set apart."""
    if path:
        lines = pathlib.Path(path).read_text(encoding="ascii").splitlines()
    else:
        command = ["bible", "-f", "Gen1:1-Rev22:21"]
        lines = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True,
                               encoding="ascii").stdout.splitlines()
    texts, chapter = {False: [], True: []}, None
    for line in lines:
        book, number, verse = re.fullmatch(r"(\d?[A-Za-z]+)(\d+):\d+ +(.*\S)\s*", line).groups()
        text = texts[book in HELD_OUT_BOOKS]
        if text and (book, number) != chapter:
            text.append("")
        chapter = book, number
        text.append(verse)
    return ["\n".join(text) + "\n" for text in (texts[False], texts[True])]


def rate_at(step):
    """Linear warm-up, then a cosine down to a fiftieth."""
    if step < WARM_UP:
        return RATE * (step + 1) / WARM_UP
    done = (step - WARM_UP) / (STEPS - WARM_UP)
    return RATE * (0.02 + 0.98 * 0.5 * (1.0 + math.cos(math.pi * done)))


def train(model, tokens, held_out):
    matrices = [p for p in model.parameters() if p.dim() == 2]
    scales = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                                   {"params": scales, "weight_decay": 0.0}],
                                  betas=(0.9, 0.98), fused=True)
    started, total = time.monotonic(), 0.0
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step)
        starts = torch.randint(len(tokens) - LENGTH, (BATCH, 1))
        window = tokens[starts + torch.arange(LENGTH + 1)]
        loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() / math.log(2)
        if (step + 1) % 100 == 0:
            print(f"step {step + 1:5}  {time.monotonic() - started:5.0f} s  "
                  f"training {total / 100:.4f}", end="", flush=True)
            total = 0.0
            if (step + 1) % 500 == 0:
                print(f"  held out {bits(model, held_out, LENGTH, 16, 0):.4f}", end="")
            print(flush=True)


@torch.no_grad()
def bits(model, tokens, length, batch, start):
    """Bits per character over `batch` windows of `length` inputs; README.md defines them."""
    windows = tokens[start:start + batch * (length + 1)].view(batch, length + 1)
    loss = F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
    return loss.item() / math.log(2)


def expect(model, held_out):
    """Evaluates the model in float64: small windows for tests, then the whole text."""
    model.double()

    def window(length, batch, start):
        return {"length": length, "batch": batch, "start": start,
                "bits_per_character": bits(model, held_out, length, batch, start)}

    return {"windows": [window(64, 8, 0), window(200, 3, 1000)],
            "whole": window(LENGTH, len(held_out) // (LENGTH + 1), 0)}


@torch.no_grad()
def sample(model, prompt, vocabulary, count):
    """Continues the prompt, drawing each character at temperature 0.8."""
    tokens = [vocabulary.index(character) for character in prompt]
    for _ in range(count):
        logits = model(torch.tensor([tokens[-LENGTH:]]))[0, -1] / 0.8
        tokens.append(torch.multinomial(logits.softmax(-1), 1).item())
    return "".join(vocabulary[token] for token in tokens)


def write(name, text):
    (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")


def main():
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(2)

    text, held_out_text = read_text(sys.argv[1] if len(sys.argv) > 1 else None)
    vocabulary = sorted(set(text + held_out_text))
    ids = {character: index for index, character in enumerate(vocabulary)}
    tokens = torch.tensor([ids[character] for character in text])
    held_out = torch.tensor([ids[character] for character in held_out_text])
    print(f"{len(tokens)} + {len(held_out)} characters, {len(vocabulary)} distinct", flush=True)

    model = Model(len(vocabulary))
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    train(model, tokens, held_out)

    weights = {name: tensor.detach().contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, FOLDER / "weights.safetensors")
    export(weights, FOLDER / "graph.json")
    np.save(FOLDER / "held_out.npy", held_out.numpy())
    write("held_out.txt", held_out_text)
    write("vocab.json", json.dumps(vocabulary) + "\n")
    prompt = held_out_text.split("\n", 1)[0] + "\n"
    write("prompt.txt", prompt)
    print(sample(model, prompt, vocabulary, 400))

    expected = expect(model, held_out)
    lines = ",\n  ".join(json.dumps(window) for window in expected["windows"])
    write("expected.json", f'{{\n"windows": [\n  {lines}\n],\n'
                           f'"whole": {json.dumps(expected["whole"])}\n}}\n')
    print((FOLDER / "expected.json").read_text())


if __name__ == "__main__":
    main()
