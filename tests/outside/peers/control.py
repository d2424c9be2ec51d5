"""Ops that run graphs, whose nodes are computed by their own peers, and ops that make numbers sizes."""

import numpy as np

from peers import peer


@peer("call", "the peers of the graph's nodes")
def call(c):
    return c.run(c.graph, c.x)


@peer("custom_function", "the peers of the nodes of forward_graph")
def custom_function(c):
    return c.run(c.forward_graph, c.x)[:c.results]


@peer("cond", "the peers of the graphs' nodes")
def cond(c):
    return c.run(c.then_graph if c.x[0] else c.else_graph, c.x[1:])


@peer("while", "the peers of the graphs' nodes")
def while_(c):
    carried = len(c.x) if c.carried < 0 else c.carried
    state = list(c.x)
    turns = 0
    while turns != c.max_turns and c.run(c.cond_graph, state)[0]:
        state[:carried] = c.run(c.body_graph, state)
        turns += 1
    return state[:carried]


@peer("scan", "the peers of the graph's nodes")
def scan(c):
    sequences = len(c.x) - c.carried if c.sequences < 0 else c.sequences
    first, last = c.carried, c.carried + sequences
    turns = len(c.x[first]) if sequences else c.turns
    state, made = list(c.x[:first]), [None] * turns
    for t in reversed(range(turns)) if c.reverse else range(turns):
        outputs = c.run(c.body_graph, state + [x[t] for x in c.x[first:last]] + list(c.x[last:]))
        state, made[t] = outputs[:first], outputs[first:]
    if not turns:  # one on anything tells of what shape results would be
        outputs = c.run(c.body_graph, state + [np.zeros(x.shape[1:], x.dtype) for x in c.x[first:last]] + list(c.x[last:]))
        return state + [np.zeros((0, *y.shape), y.dtype) for y in outputs[first:]]
    return state + [np.stack(each) for each in zip(*made)]


@peer("associative_scan", "the peers of the graph's nodes")
def associative_scan(c):
    rows = [np.moveaxis(x, c.dim, 0) for x in c.x]
    order = list(reversed(range(len(rows[0])))) if c.reverse else list(range(len(rows[0])))
    made = [x.copy() for x in rows]
    for before, t in zip(order, order[1:]):
        for y, element in zip(made, c.run(c.combine_graph, [y[before] for y in made] + [x[t] for x in rows])):
            y[t] = element
    return [np.moveaxis(y, 0, c.dim) for y in made]


@peer("resolve", "none: the operand")
def resolve(c):
    return c.x[0]
