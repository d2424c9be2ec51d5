"""Small programs, as tests of all of the package want them."""

import kiln


def compiled(build, *types, **options):
    """The executable of a function of values, whose inputs have the types (dtype, shape)."""
    graph = kiln.Graph()
    results = build(*(graph.input(f"x{i}", dtype, shape) for i, (dtype, shape) in enumerate(types)))
    for value in results if isinstance(results, tuple) else (results,):
        graph.output(value)
    return kiln.compile(graph, **options)
