"""A backend in Python, beside binding.py: kiln/backend.h over ctypes. It works on f32, row-major, of known sizes."""

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int32, c_uint32, c_uint64, c_void_p

from binding import (DESTROY, DLTensor, declare, error_of, fallible, floats_of, held, lent, let_go, lib, out, utf8)

BACKEND_UUID_SUFFICES = 1

TARGET = CFUNCTYPE(c_void_p, c_void_p, c_void_p)
TAKES = CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_uint64, POINTER(c_uint32))
COMPILE = CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)
LOAD = CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_uint64, POINTER(c_void_p))
PREPARE = CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_uint64, c_void_p)
OPEN = CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)
RUN = CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(POINTER(DLTensor)), c_uint64, c_void_p)
END = CFUNCTYPE(None, c_void_p, c_void_p)


class BackendStruct(Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("name", c_char_p), ("name_size", c_uint64),
                ("version", c_char_p), ("version_size", c_uint64), ("uuid", c_char_p), ("options", c_void_p),
                ("option_count", c_uint64), ("device_type", c_int32), ("reserved0", c_uint32), ("user", c_void_p),
                ("target", TARGET), ("takes", TAKES), ("compile", COMPILE), ("load", LOAD), ("prepare", PREPARE),
                ("open", OPEN), ("run", RUN), ("close", END), ("release", END), ("unload", END), ("destroy", DESTROY)]


declare(c_void_p, "backend_context", c_void_p)
fallible("backend_register", c_void_p, c_void_p, c_void_p)
fallible("backend_refuse", c_void_p, c_char_p, c_uint64)
fallible("backend_blob", c_void_p, c_char_p, c_uint64)


class Region:
    """What a backend is asked about: nodes, and which op each is."""

    def __init__(self, call, graph):
        self.context, self.graph = lib.kiln_backend_context(call), graph

    def count(self, op):
        """How many nodes are of the op."""
        size = out(lib.kiln_graph_nodes, self.graph, None, 0, result=c_uint64)
        nodes = (c_uint64 * size)()
        out(lib.kiln_graph_nodes, self.graph, nodes, size, result=c_uint64)
        return sum(self.is_op(node, op) for node in nodes)

    def is_op(self, node, name):
        return lib.kiln_node_op(self.graph, node) == out(lib.kiln_op_find, self.context, *utf8(name), result=c_uint32)


class Backend:
    """Subclasses have refusal(region, node) -> why it does not take it, or None; compile(region) -> bytes; and
    run(bytes, *arrays), the arrays of a region's inputs, parameters and outputs."""

    def __init__(self, name, uuid):
        self.name, self.uuid, self.destroyed, self.compiles, self.runs = name, uuid, 0, 0, 0
        self.programs = {}  # bytes, by what Kiln calls them

    def register_in(self, context):
        name, size = utf8(self.name)
        request = BackendStruct(struct_size=ctypes.sizeof(BackendStruct), flags=BACKEND_UUID_SUFFICES, name=name,
                                name_size=size, uuid=self.uuid, device_type=1, user=id(self), takes=takes,
                                compile=compile_region, load=load, run=run, unload=unload, destroy=let_go)
        with lent(self):
            lib.kiln_backend_register(context, ctypes.byref(request), None)


def guarded(function):
    """What a callback raises is the error that it returns."""

    def call(user, *arguments):
        try:
            function(held[user], *arguments)
            return None
        except BaseException as error:
            return error_of(error)

    return call


@TAKES
@guarded
def takes(backend, call, graph, node, result):
    why = backend.refusal(Region(call, graph), node)
    result[0] = why is None
    if why is not None:
        lib.kiln_backend_refuse(call, *utf8(why))


@COMPILE
@guarded
def compile_region(backend, call, graph):
    backend.compiles += 1
    blob = backend.compile(Region(call, graph))
    lib.kiln_backend_blob(call, blob, len(blob))


@LOAD
@guarded
def load(backend, blob, size, program):
    number = len(backend.programs) + 1
    backend.programs[number] = ctypes.string_at(blob, size)
    program[0] = number


@RUN
@guarded
def run(backend, program, _prepared, _state, arrays, count, _options):
    backend.runs += 1
    backend.run(backend.programs[program], *(floats_of(arrays[i].contents) for i in range(count)))


@END
def unload(user, program):
    held[user].programs.pop(program)
