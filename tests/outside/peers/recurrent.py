"""Recurrent networks, by the modules of torch.nn with the operands as their weights."""

import numpy as np
import torch

from peers import peer


def network(c, make, states):
    """Calls the module that `make` gives, in float64."""
    x = c.tensor(0)
    weights = c.layers * (2 if c.bidirectional else 1) * (4 if c.bias else 2)
    hidden = c.x[2].shape[1]
    module = make(c.x[0].shape[2], hidden, num_layers=c.layers, bias=c.bias, batch_first=c.batch_first,
                  bidirectional=c.bidirectional, dtype=torch.float64)
    for own, given in zip(module._flat_weights, range(1, 1 + weights), strict=True):
        own.data.copy_(c.tensor(given))
    time, batch = (1, 0) if c.batch_first else (0, 1)
    runs = c.layers * (2 if c.bidirectional else 1)
    state = [torch.zeros(runs, x.shape[batch], hidden, dtype=torch.float64) for _ in range(states)]
    if c.initial_state:
        state = [c.tensor(1 + weights + k) for k in range(states)]
    if x.shape[time] == 0:  # which PyTorch refuses
        width = hidden * (2 if c.bidirectional else 1)
        return [x.new_zeros(*x.shape[:2], width), *state]
    with torch.no_grad():
        if not c.lengths:
            y, last = module(x, tuple(state) if states > 1 else state[0])
            return [y, *(last if states > 1 else [last])]
        # Row by row, for PyTorch refuses rows without elements when they are packed.
        y, last = x.new_zeros(*x.shape[:2], hidden * (2 if c.bidirectional else 1)), [s.clone() for s in state]
        for row, length in enumerate(np.clip(c.x[-1], 0, x.shape[time])):
            if length == 0:
                continue
            own = [s[:, row:row + 1].contiguous() for s in state]
            some, ends = module(x[:length, row:row + 1], tuple(own) if states > 1 else own[0])
            y[:length, row:row + 1] = some
            for s, end in zip(last, ends if states > 1 else [ends]):
                s[:, row:row + 1] = end
        return [y, *last]


@peer("rnn", "torch.nn.RNN")
def rnn(c):
    return network(c, lambda *sizes, **more: torch.nn.RNN(*sizes, nonlinearity=c.activation, **more), 1)


@peer("lstm", "torch.nn.LSTM")
def lstm(c):
    return network(c, torch.nn.LSTM, 2)


@peer("gru", "torch.nn.GRU; with linear_before_reset false its definition")
def gru(c):
    """PyTorch applies the reset gate to the product; with linear_before_reset false it is applied to the state."""
    if c.linear_before_reset:
        return network(c, torch.nn.GRU, 1)
    x, w_ih, w_hh, *biases = c.tensors()
    b_ih, b_hh = biases if c.bias else [torch.zeros(len(w_ih), dtype=x.dtype)] * 2
    h, made = x.new_zeros(x.shape[1], w_hh.shape[1]), []
    for row in x:
        r, z, n = (row @ w_ih.T + b_ih).chunk(3, 1)
        w_r, w_z, w_n = w_hh.chunk(3)
        b_r, b_z, b_n = b_hh.chunk(3)
        r, z = torch.sigmoid(r + h @ w_r.T + b_r), torch.sigmoid(z + h @ w_z.T + b_z)
        h = (1 - z) * torch.tanh(n + (r * h) @ w_n.T + b_n) + z * h
        made.append(h)
    return [torch.stack(made), h[None]]
