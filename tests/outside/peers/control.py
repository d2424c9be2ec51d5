"""Ops that run graphs, whose nodes are computed by their own peers, and ops that make numbers sizes."""

from peers import peer


@peer("call", "the peers of the graph's nodes")
def call(c):
    return c.run(c.graph, c.x)


@peer("cond", "the peers of the graphs' nodes")
def cond(c):
    return c.run(c.then_graph if c.x[0] else c.else_graph, c.x[1:])


@peer("while", "the peers of the graphs' nodes")
def while_(c):
    carried = len(c.x) if c.carried < 0 else c.carried
    state = list(c.x)
    while c.run(c.cond_graph, state)[0]:
        state[:carried] = c.run(c.body_graph, state)
    return state[:carried]


@peer("resolve", "none: the operand")
def resolve(c):
    return c.x[0]
