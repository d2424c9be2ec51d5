"""Recurrent layers that torch's CPU kernels have whole, as they come in inference."""

from __future__ import annotations

from typing import Any, Sequence

import kiln
from kiln.torch.lowering import Lowering
from kiln.torch.rows import FLOATS, Unsupported, row

_LSTM = 2


@row("mkldnn_rnn_layer.default", "lstm flip", FLOATS, when="an LSTM of one layer, one direction, in inference")
def _(b: Lowering, x: kiln.Value, w_ih: kiln.Value, w_hh: kiln.Value, b_ih: kiln.Value, b_hh: kiln.Value,
      h: kiln.Value, c: kiln.Value, reverse: bool, batch_sizes: Sequence[int], mode: int, hidden_size: int,
      num_layers: int, has_biases: bool, bidirectional: bool, batch_first: bool, train: bool) -> tuple[Any, ...]:
    if mode != _LSTM or num_layers != 1 or bidirectional or train or batch_sizes or b.used(3):
        raise Unsupported("no LSTM of one layer and one direction in inference")
    # x is [T, B, I] whatever batch_first says, which has been heeded before.
    biases = [b_ih, b_hh] if has_biases else []
    states = [b.reshape(each, [1, x.shape[1], hidden_size]) for each in (h, c)]
    y, *ends = b.several("lstm", b.op("flip", x, dims=[0]) if reverse else x, w_ih, w_hh, *biases, *states,
                         bias=has_biases, initial_state=True)
    y = b.op("flip", y, dims=[0]) if reverse else y
    return y, *(b.reshape(end, b.sizes(fake)) for end, fake in zip(ends, b.outs[1:])), None
