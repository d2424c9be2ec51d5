"""A thin binding of Kiln over ctypes alone: errors are exceptions, handles destroy themselves, passes are objects.

KILN_LIBRARY is the path of libkiln.so.
"""

import array
import contextlib
import ctypes
import math
import os
from ctypes import POINTER, Structure, byref, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

# ---- structs and numbers: kiln/types.h, kiln/dlpack.h

STAGE_POST_GRAD, PASS_UUID_SUFFICES, FUNCTION_UUID_SUFFICES, OP_UUID_SUFFICES = 3, 1, 1, 16
INVALID_ARGUMENT, NOT_CACHED, CANCELLED, PLUGIN_FAILED, EXCEPTION = 1, 6, 7, 10, 17


class Text(Structure):
    _fields_ = [("data", c_void_p), ("size", c_uint64)]

    def __str__(self):
        return ctypes.string_at(self.data, self.size).decode()


class DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class Dim(Structure):
    _fields_ = [("value", c_int64), ("expr", c_uint64)]


class Type(Structure):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_uint32), ("rank", c_uint32), ("layout", c_uint32),
                ("dims", POINTER(Dim)), ("strides", POINTER(Dim))]


RUN = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p)
RUN_OP = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p, POINTER(POINTER(DLTensor)), c_uint64, c_void_p)
DESTROY = ctypes.CFUNCTYPE(None, c_void_p)
EVENT = ctypes.CFUNCTYPE(c_int32, c_void_p, c_uint32, c_void_p, c_uint64)


class PassStruct(Structure):
    _fields_ = [("struct_size", c_uint32), ("stage", c_uint32), ("priority", c_int32), ("timing", c_uint32),
                ("flags", c_uint32), ("reserved0", c_uint32), ("name", c_char_p), ("name_size", c_uint64),
                ("version", c_char_p), ("version_size", c_uint64), ("uuid", c_char_p), ("options", c_void_p),
                ("option_count", c_uint64), ("user", c_void_p), ("run", RUN), ("fingerprint", c_void_p),
                ("destroy", DESTROY)]


class EventSink(Structure):
    _fields_ = [("struct_size", c_uint32), ("kinds", c_uint32), ("user", c_void_p), ("event", EVENT),
                ("destroy", DESTROY)]


class FunctionStruct(Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("name", c_char_p), ("name_size", c_uint64),
                ("version", c_char_p), ("version_size", c_uint64), ("signature", c_char_p), ("signature_size", c_uint64),
                ("uuid", c_char_p), ("pointer", c_void_p), ("library", c_char_p), ("library_size", c_uint64),
                ("symbol", c_char_p), ("symbol_size", c_uint64), ("user", c_void_p), ("destroy", DESTROY)]


class OpStruct(Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("schema", c_char_p), ("schema_size", c_uint64),
                ("uuid", c_char_p), ("user", c_void_p), ("infer", RUN), ("decompose", c_void_p), ("open", c_void_p),
                ("run", RUN_OP), ("close", c_void_p), ("destroy", DESTROY)]


# ---- functions: kiln/kiln.h, kiln/graph.h, kiln/function.h

lib = ctypes.CDLL(os.environ["KILN_LIBRARY"])
TEXT = (c_char_p, c_uint64)  # how a string is passed: pointer and bytes
PATH = (c_void_p, *TEXT, c_void_p)


class KilnError(Exception):
    """A kiln_error, read and destroyed. `reason` is the lookup's, when the error has a compile's report."""

    def __init__(self, handle):
        text = Text()
        self.code = lib.kiln_error_code(handle)
        lib.kiln_error_message(handle, byref(text))
        super().__init__(str(text))
        lib.kiln_error_plugin(handle, byref(text))
        self.plugin = str(text)
        report, self.reason = lib.kiln_error_report(handle), None
        if report:
            lib.kiln_report_get_text(report, *utf8("reason"), byref(text))
            self.reason = str(text)
        lib.kiln_error_destroy(handle)


def raise_error(handle, function, arguments):
    if handle:
        raise KilnError(handle)


def declare(result, names, *arguments, check=None):
    for name in names.split():
        function = getattr(lib, "kiln_" + name)
        function.restype, function.argtypes = result, arguments
        if check:
            function.errcheck = check


def fallible(name, *arguments):
    declare(c_void_p, name, *arguments, check=raise_error)


declare(None, "error_message error_plugin", c_void_p, c_void_p)
declare(None, "error_destroy options_destroy context_destroy graph_destroy executable_destroy call_destroy "
              "report_destroy blob_destroy", c_void_p)
declare(c_uint32, "error_code", c_void_p)
declare(c_void_p, "error_create", c_uint32, *TEXT, c_void_p)
declare(c_void_p, "error_report pass_edit pass_context edit_view", c_void_p)
declare(c_void_p, "blob_data", c_void_p, POINTER(c_uint64))
declare(c_uint32, "version")
declare(c_uint32, "node_op", c_void_p, c_uint64)
declare(c_uint64, "node_input", c_void_p, c_uint64, c_uint32)
fallible("options_create", c_void_p)
fallible("options_set_bool", c_void_p, *TEXT, c_uint32)
fallible("options_set_text", c_void_p, *TEXT, *TEXT)
fallible("context_create", c_void_p, c_void_p, c_void_p)
fallible("context_close", c_void_p)
fallible("context_report graph_describe call_create", c_void_p, c_void_p)
fallible("plugin_load", *PATH)
fallible("pass_register", c_void_p, c_void_p, c_void_p, c_void_p)
fallible("pass_unregister", c_void_p, c_uint64)
fallible("function_register op_register", c_void_p, c_void_p, c_void_p)
fallible("op_call_dtype", c_void_p, c_uint32, c_void_p)
fallible("op_call_dims", c_void_p, c_uint32, c_void_p, c_uint64, c_void_p)
fallible("op_call_result", c_void_p, c_uint32, c_void_p)
fallible("graph_parse graph_write op_find executable_save executable_text call_slot "
         "report_get_i64 report_get_text report_count", *PATH)
fallible("executable_open", *PATH, c_void_p)
fallible("graph_nodes", c_void_p, c_void_p, c_uint64, c_void_p)
fallible("edit_constant", c_void_p, *TEXT, c_void_p, c_void_p)
fallible("edit_add", c_void_p, c_uint32, *TEXT, c_void_p, c_uint64, c_void_p, c_uint64, c_void_p)
fallible("edit_replace", c_void_p, c_uint64, c_uint64)
fallible("pass_done", c_void_p, c_uint64)
fallible("compile", c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)
fallible("call_bind", c_void_p, c_uint32, c_void_p)
fallible("call_run", c_void_p, c_void_p, c_uint64, c_void_p)


def utf8(text):
    data = str(text).encode()
    return data, len(data)


def out(function, *arguments, result=c_void_p):
    """The value that `function` writes to its last argument."""
    value = result()
    function(*arguments, byref(value))
    return value if issubclass(result, Structure) else value.value


class Handle:
    """Owns a handle of Kiln; ctypes takes it wherever the pointer is wanted."""

    _as_parameter_ = None

    def __init__(self, pointer):
        self._as_parameter_ = pointer

    def destroy(self):
        pointer, self._as_parameter_ = self._as_parameter_, None
        getattr(lib, f"kiln_{type(self).__name__.lower()}_destroy")(pointer)

    def __del__(self):
        self.destroy()


class Blob(Handle):
    def __str__(self):
        size = c_uint64()
        data = lib.kiln_blob_data(self, byref(size))
        return ctypes.string_at(data, size.value).decode()


class Report(Handle):
    def i64(self, path):
        return out(lib.kiln_report_get_i64, self, *utf8(path), result=c_int64)

    def text(self, path):
        return str(out(lib.kiln_report_get_text, self, *utf8(path), result=Text))

    def count(self, path):
        return out(lib.kiln_report_count, self, *utf8(path), result=c_uint64)


class Options(Handle):
    def __init__(self, **values):
        super().__init__(out(lib.kiln_options_create))
        for name, value in values.items():
            if isinstance(value, bool):
                lib.kiln_options_set_bool(self, *utf8(name), value)
            else:
                lib.kiln_options_set_text(self, *utf8(name), *utf8(value))


class Graph(Handle):
    def text(self, form):
        return str(Blob(out(lib.kiln_graph_write, self, *utf8(form))))

    def describe(self):
        return Report(out(lib.kiln_graph_describe, self))


class Executable(Handle):
    def text(self, what):
        return str(Blob(out(lib.kiln_executable_text, self, *utf8(what))))

    def save(self, path):
        lib.kiln_executable_save(self, *utf8(path), None)


class Context(Handle):
    def __init__(self, listener=None, **settings):
        sink = EventSink(ctypes.sizeof(EventSink), 0, id(listener), send_event, let_go)
        with lent(listener):
            super().__init__(out(lib.kiln_context_create, Options(**settings), byref(sink) if listener else None))

    def report(self):
        return Report(out(lib.kiln_context_report, self))

    def load_plugin(self, path):
        lib.kiln_plugin_load(self, *utf8(path), None)

    def register(self, each):
        """The id to unregister the pass by."""
        name, size = utf8(each.name)
        request = PassStruct(struct_size=ctypes.sizeof(PassStruct), stage=STAGE_POST_GRAD, name=name, name_size=size,
                             flags=PASS_UUID_SUFFICES if each.uuid else 0, uuid=each.uuid, user=id(each), run=run_pass,
                             destroy=let_go)
        with lent(each):
            return out(lib.kiln_pass_register, self, byref(request), None, result=c_uint64)

    def register_function(self, each):
        """The id to unregister the function by."""
        (name, size), (signature, signature_size) = utf8(each.name), utf8(each.signature)
        request = FunctionStruct(struct_size=ctypes.sizeof(FunctionStruct), name=name, name_size=size,
                                 flags=FUNCTION_UUID_SUFFICES if each.uuid else 0, uuid=each.uuid, signature=signature,
                                 signature_size=signature_size, pointer=ctypes.cast(each.pointer, c_void_p),
                                 user=id(each), destroy=let_go)
        with lent(each):
            return out(lib.kiln_function_register, self, byref(request), result=c_uint64)

    def register_op(self, each):
        """The op's number, which is the context's for good."""
        schema, size = utf8(each.schema)
        request = OpStruct(struct_size=ctypes.sizeof(OpStruct), flags=OP_UUID_SUFFICES if each.uuid else 0, schema=schema,
                           schema_size=size, uuid=each.uuid, user=id(each), infer=infer_op, run=run_op, destroy=let_go)
        with lent(each):
            return out(lib.kiln_op_register, self, byref(request), result=c_uint32)

    def unregister(self, number):
        lib.kiln_pass_unregister(self, number)

    def parse(self, text):
        return Graph(out(lib.kiln_graph_parse, self, *utf8(text)))

    def compile(self, graph, **settings):
        executable, report = c_void_p(), c_void_p()
        lib.kiln_compile(self, graph, Options(**settings), byref(executable), byref(report))
        return Executable(executable.value), Report(report.value)

    def load(self, path):
        return Executable(out(lib.kiln_executable_open, self, *utf8(path), None))

    def close(self):
        lib.kiln_context_close(self)


# DLPack's code, and the type of Python's array that holds the elements: of 16-bit and 8-bit floats, their bits.
DTYPES = {"f64": (2, "d"), "f32": (2, "f"), "f16": (2, "H"), "bf16": (4, "H"), "f8_e4m3fn": (10, "B"),
          "f8_e5m2": (12, "B"), "i64": (0, "q"), "i32": (0, "i"), "i16": (0, "h"), "i8": (0, "b"), "u64": (1, "Q"),
          "u32": (1, "I"), "u16": (1, "H"), "u8": (1, "B"), "bool": (6, "B")}


class Array:
    """A row-major array in Python's own memory, and the descriptor that lends it to Kiln."""

    def __init__(self, shape, values=None, dtype="f32"):
        code, elements = DTYPES[dtype]
        count = math.prod(shape)
        self.values = array.array(elements, values or [math.nan if elements in "fd" else 0] * count)
        self.shape = (c_int64 * len(shape))(*shape)
        self.tensor = DLTensor(self.values.buffer_info()[0], 1, 0, len(shape), code, 8 * self.values.itemsize, 1,
                               self.shape, None, 0)


class Call(Handle):
    def __init__(self, executable):
        super().__init__(out(lib.kiln_call_create, executable))
        self.bound = {}  # Kiln reads this memory as long as it is bound

    def bind(self, name, value):
        lib.kiln_call_bind(self, out(lib.kiln_call_slot, self, *utf8(name), result=c_uint32), byref(value.tensor))
        self.bound[name] = value

    def run(self, *arrays):
        tensors = (c_void_p * len(arrays))(*(ctypes.addressof(value.tensor) for value in arrays))
        lib.kiln_call_run(self, tensors, len(arrays), None)


# ---- callbacks. Kiln gets an object's id as `user`; the object lives here until Kiln calls `destroy`.

held = {}


@contextlib.contextmanager
def lent(owner):
    """Inside, Kiln takes `owner` over; when it refuses, the object is ours still."""
    if owner:
        held[id(owner)] = owner
    try:
        yield
    except KilnError:
        held.pop(id(owner), None)
        raise


def error_of(error):
    """What must not cross C: ctypes would print it, and Kiln take a wild pointer for an error."""
    return lib.kiln_error_create(EXCEPTION, *utf8(f"{type(error).__name__}: {error}"), None)


@RUN
def run_pass(user, call):
    try:
        lib.kiln_pass_done(call, held[user].run(Rewriter(call)))
        return None
    except BaseException as error:
        return error_of(error)


@RUN
def infer_op(user, call):
    try:
        held[user].infer(OpCall(call))
        return None
    except BaseException as error:
        return error_of(error)


@RUN_OP
def run_op(user, _state, arrays, count, _options):
    try:
        held[user].run(*(floats_of(arrays[i].contents) for i in range(count)))
        return None
    except BaseException as error:
        return error_of(error)


def floats_of(tensor):
    """An array of f32 in Kiln's memory, row-major."""
    return (ctypes.c_float * math.prod(tensor.shape[:tensor.ndim])).from_address(tensor.data)


@EVENT
def send_event(user, kind, text, size):
    try:
        return int(held[user].event(ctypes.string_at(text, size).decode()))
    except BaseException:
        return 1  # all that an event can say: cancel


@DESTROY
def let_go(user):
    held.pop(user).destroyed += 1


class Listener:
    """Receives a context's events; `event` takes the text and returns whether to cancel."""

    def __init__(self, event):
        self.event, self.destroyed = event, 0


class Pass:
    """A graph pass in Python: `rewrite` takes a Rewriter and returns how often it rewrote."""

    def __init__(self, name, rewrite, uuid=None):
        self.name, self.rewrite, self.uuid, self.runs, self.destroyed = name, rewrite, uuid, 0, 0

    def run(self, graph):
        self.runs += 1
        return self.rewrite(graph)


class Function:
    """Runs nodes: `call` gets what `signature` says, as ctypes of `types`, and returns nothing or raises."""

    def __init__(self, name, signature, types, call, uuid=None):
        self.name, self.signature, self.call, self.uuid, self.runs, self.destroyed = name, signature, call, uuid, 0, 0
        self.pointer = ctypes.CFUNCTYPE(c_void_p, *types)(self.run)

    def run(self, *arguments):
        try:
            self.runs += 1
            self.call(*arguments)
            return None
        except BaseException as error:
            return error_of(error)


class Op:
    """An op in Python, of f32: `infer` takes an OpCall, `map` the elements of each operand and of each result to fill."""

    def __init__(self, schema, infer, map, uuid=None):
        self.schema, self.infer, self.map, self.uuid, self.runs, self.destroyed = schema, infer, map, uuid, 0, 0

    def run(self, *arrays):
        self.runs += 1
        self.map(*arrays)


class OpCall:
    """What infer knows of a node: types of operands. It tells those of results."""

    def __init__(self, call):
        self.call = call

    def dtype(self, operand):
        return out(lib.kiln_op_call_dtype, self.call, operand, result=c_uint32)

    def dims(self, operand):
        rank = out(lib.kiln_op_call_dims, self.call, operand, None, 0, result=c_uint64)
        dims = (Dim * rank)()
        out(lib.kiln_op_call_dims, self.call, operand, dims, rank, result=c_uint64)
        return dims

    def result(self, index, dtype, dims):
        told = Type(ctypes.sizeof(Type), dtype, len(dims), 0, dims, None)
        lib.kiln_op_call_result(self.call, index, byref(told))


class Rewriter:
    """The edit of a pass's graph. A node is an integer, a value is node << 32 | output."""

    def __init__(self, call):
        self.edit, self.context = lib.kiln_pass_edit(call), lib.kiln_pass_context(call)
        self.graph = lib.kiln_edit_view(self.edit)

    def nodes(self):
        count = out(lib.kiln_graph_nodes, self.graph, None, 0, result=c_uint64)
        nodes = (c_uint64 * count)()
        out(lib.kiln_graph_nodes, self.graph, nodes, count, result=c_uint64)
        return list(nodes)

    def op(self, name):
        return out(lib.kiln_op_find, self.context, *utf8(name), result=c_uint32)

    def is_op(self, node, name):
        return lib.kiln_node_op(self.graph, node) == self.op(name)

    def input(self, node, index):
        return lib.kiln_node_input(self.graph, node, index)

    def constant(self, value):
        scalar = Array([], [value])  # named: its memory must outlive the call
        return out(lib.kiln_edit_constant, self.edit, None, 0, byref(scalar.tensor), result=c_uint64)

    def add(self, op, *inputs):
        values = (c_uint64 * len(inputs))(*inputs)
        node = out(lib.kiln_edit_add, self.edit, self.op(op), None, 0, values, len(inputs), None, 0, result=c_uint64)
        return node << 32

    def replace(self, before, after):
        lib.kiln_edit_replace(self.edit, before, after)
