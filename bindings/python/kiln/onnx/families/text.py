"""Counts of sequences of numbers, as texts are made of."""

from __future__ import annotations

import numpy as np

from kiln import Value, ops
from kiln.onnx._node import Node
from kiln.onnx._registry import op


@op("TfIdfVectorizer")
def tf_idf(n: Node, x: Value) -> Value:
    """How often each of the known n-grams of integers is in a row, also with gaps between its elements."""
    if n.has("pool_strings"):
        raise n.refuse("pool_strings: Kiln has no texts")
    pool, starts = n.ints("pool_int64s"), [*n.ints("ngram_counts"), 2**62]
    places, weights = n.ints("ngram_indexes"), n.floats("weights", [])
    shortest, longest, skips = n.integer("min_gram_length"), n.integer("max_gram_length"), n.integer("max_skip_count")
    mode = n.text("mode", among=("TF", "IDF", "TFIDF"))
    rows = ops.unsqueeze(x, dims=[0]) if x.ndim == 1 else x
    batch, width = rows.shape[0], n.literal([rows.shape[1]], "the length of a row")[0]
    size, number, found, columns = max(places) + 1, 0, [], []
    for length in range(1, len(starts)):
        grams = pool[starts[length - 1]:starts[length]]
        told = np.array(grams, np.int64).reshape(-1, length)
        own = list(range(number, number + len(told)))
        number += len(told)
        if not len(told) or not shortest <= length <= longest:
            continue
        counts = None
        for gap in range(skips + 1 if length > 1 else 1):
            count = width - (length - 1) * (gap + 1)
            if count > 0:
                window = ops.stack(*(ops.slice(rows, dim=1, start=i * (gap + 1), end=i * (gap + 1) + count)
                                     for i in range(length)), dim=2)
                same = ops.all(ops.eq(ops.unsqueeze(ops.convert(window, dtype="i64"), dims=[2]),
                                      n.frame.graph.constant(told)), dims=[3])
                hits = ops.sum(ops.convert(same, dtype="f32"), dims=[1])
                counts = hits if counts is None else counts + hits
        if counts is not None:
            found.append(counts)
            columns += own
    made = ops.full(dtype="f32", shape=[batch, size])
    if found:
        counts = found[0] if len(found) == 1 else ops.concat(*found, dim=1)
        if mode == "IDF":
            counts = ops.convert(ops.gt(counts, 0.0), dtype="f32")
        if mode != "TF" and weights:
            counts = counts * np.array([weights[i] for i in columns], np.float32)
        made = ops.index_add(made, n.frame.graph.constant(np.array([places[i] for i in columns], np.int64)), counts, dim=1)
    return ops.reshape(made, shape=[size]) if x.ndim == 1 else made
