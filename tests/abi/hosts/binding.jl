# A thin binding of Kiln over ccall: errors are exceptions, handles destroy themselves, passes are functions. KILN_LIBRARY
# is the path of libkiln.so. Arrays of Julia's are column-major: Kiln, which is row-major, sees their dimensions reversed.
module Kiln

export BFloat16, Call, Context, F8E4M3FN, F8E5M2, KilnError, Listener, Map, Op, OpCall, Pass, Rewriter
export add, bind!, compile, constant, describe, destroy!, dims, dtype, input, is_op, load, load_plugin, member_count, nodes,
       parse_graph, integer, register, substitute!, report, run!, save, text, tell_result, unregister

const lib = ENV["KILN_LIBRARY"]

# ---- structs and numbers: kiln/types.h, kiln/dlpack.h

const INVALID_ARGUMENT, NOT_CACHED, CANCELLED, PLUGIN_FAILED, EXCEPTION = 1, 6, 7, 10, 17
const STAGE_POST_GRAD, PASS_UUID_SUFFICES, FUNCTION_UUID_SUFFICES, OP_UUID_SUFFICES = 3, 1, 1, 16

const Raw = Ptr{Cvoid}     # any handle
const Chars = Ptr{UInt8}   # a string is passed as this and its size

struct Text
    data::Chars
    size::UInt64
end
Base.String(text::Text) = text.size == 0 ? "" : unsafe_string(text.data, text.size)

struct DLTensor
    data::Ptr{Cvoid}
    device_type::Int32
    device_id::Int32
    ndim::Int32
    code::UInt8
    bits::UInt8
    lanes::UInt16
    shape::Ptr{Int64}
    strides::Ptr{Int64}
    byte_offset::UInt64
end

struct PassRequest
    struct_size::UInt32
    stage::UInt32
    priority::Int32
    timing::UInt32
    flags::UInt32
    reserved0::UInt32
    name::Chars
    name_size::UInt64
    version::Chars
    version_size::UInt64
    uuid::Chars
    options::Ptr{Cvoid}
    option_count::UInt64
    user::Ptr{Cvoid}
    run::Ptr{Cvoid}
    fingerprint::Ptr{Cvoid}
    destroy::Ptr{Cvoid}
end

struct FunctionRequest
    struct_size::UInt32
    flags::UInt32
    name::Chars
    name_size::UInt64
    version::Chars
    version_size::UInt64
    signature::Chars
    signature_size::UInt64
    uuid::Chars
    pointer::Ptr{Cvoid}
    library::Chars
    library_size::UInt64
    symbol::Chars
    symbol_size::UInt64
    user::Ptr{Cvoid}
    destroy::Ptr{Cvoid}
end

struct OpRequest
    struct_size::UInt32
    flags::UInt32
    schema::Chars
    schema_size::UInt64
    uuid::Chars
    user::Ptr{Cvoid}
    infer::Ptr{Cvoid}
    decompose::Ptr{Cvoid}
    open::Ptr{Cvoid}
    run::Ptr{Cvoid}
    close::Ptr{Cvoid}
    destroy::Ptr{Cvoid}
end

struct Dim
    value::Int64
    expr::UInt64   # 0: the dimension is `value`
end

struct ResultType
    struct_size::UInt32
    dtype::UInt32
    rank::UInt32
    layout::UInt32
    dims::Ptr{Dim}
    strides::Ptr{Dim}
end

struct EventSink
    struct_size::UInt32
    kinds::UInt32
    user::Ptr{Cvoid}
    event::Ptr{Cvoid}
    destroy::Ptr{Cvoid}
end

# Of the library that runs.
abi_major() = @ccall(lib.kiln_version()::UInt32) >> 16

# ---- errors

# A kiln_error. `reason` is the lookup's, when the error has a compile's report.
struct KilnError <: Exception
    code::Int
    message::String
    plugin::String
    reason::String
end
Base.showerror(io::IO, error::KilnError) = print(io, error.message, " (code ", error.code, ")")

# Takes the error over, if there is one.
function check(error::Raw)
    error == C_NULL && return
    message, plugin, reason = Ref(Text(C_NULL, 0)), Ref(Text(C_NULL, 0)), Ref(Text(C_NULL, 0))
    code = @ccall lib.kiln_error_code(error::Raw)::UInt32
    @ccall lib.kiln_error_message(error::Raw, message::Ptr{Text})::Cvoid
    @ccall lib.kiln_error_plugin(error::Raw, plugin::Ptr{Text})::Cvoid
    explained = @ccall lib.kiln_error_report(error::Raw)::Raw
    if explained != C_NULL
        missed = @ccall lib.kiln_report_get_text(explained::Raw, "reason"::Chars, 6::UInt64, reason::Ptr{Text})::Raw
        @ccall lib.kiln_error_destroy(missed::Raw)::Cvoid
    end
    taken = KilnError(code, String(message[]), String(plugin[]), String(reason[]))
    @ccall lib.kiln_error_destroy(error::Raw)::Cvoid
    throw(taken)
end

# The value that `call` has Kiln write behind the pointer that it gets.
function out(call, ::Type{T}) where T
    value = Ref{T}()
    check(call(value))
    return value[]
end

# ---- handles

abstract type Handle end
Base.unsafe_convert(::Type{Raw}, handle::Handle) = handle.raw

for name in (:Options, :Context, :Graph, :Executable, :Report, :Blob)
    @eval begin
        mutable struct $name <: Handle
            raw::Raw
            $name(raw::Raw) = finalizer(destroy!, new(raw))
        end
    end
end

# A call holds on to the arrays that are bound to it.
mutable struct Call <: Handle
    raw::Raw
    bound::Dict{String, Array}
    function Call(executable::Executable)
        raw = out(Raw) do call
            @ccall lib.kiln_call_create(executable::Raw, call::Ptr{Raw})::Raw
        end
        return finalizer(destroy!, new(raw, Dict()))
    end
end

for name in (:Options, :Context, :Graph, :Executable, :Report, :Blob, :Call)
    symbol = QuoteNode(Symbol("kiln_", lowercase(string(name)), "_destroy"))
    @eval function destroy!(handle::$name)
        raw, handle.raw = handle.raw, C_NULL
        ccall(($symbol, lib), Cvoid, (Raw,), raw)
    end
end

function Options(; values...)
    options = Options(out(result -> @ccall(lib.kiln_options_create(result::Ptr{Raw})::Raw), Raw))
    for (key, value) in values
        name = string(key)
        if value isa Bool
            check(@ccall lib.kiln_options_set_bool(options::Raw, name::Chars, sizeof(name)::UInt64, value::UInt32)::Raw)
        else
            check(@ccall lib.kiln_options_set_text(options::Raw, name::Chars, sizeof(name)::UInt64, value::Chars,
                                                   sizeof(value)::UInt64)::Raw)
        end
    end
    return options
end

# The functions that take a handle and a string and write a result.
for (name, symbol, takes, gives) in ((:integer, :kiln_report_get_i64, Report, Int64),
                                     (:report_text, :kiln_report_get_text, Report, Text),
                                     (:member_count, :kiln_report_count, Report, UInt64),
                                     (:parsed, :kiln_graph_parse, Context, Raw),
                                     (:written, :kiln_graph_write, Graph, Raw),
                                     (:written, :kiln_executable_text, Executable, Raw),
                                     (:slot, :kiln_call_slot, Call, UInt32))
    @eval $name(handle::$takes, words::String) = out($gives) do result
        ccall(($(QuoteNode(symbol)), lib), Raw, (Raw, Chars, UInt64, Ptr{$gives}), handle, words, sizeof(words), result)
    end
end

text(report::Report, path) = String(report_text(report, path))
text(graph_or_executable::Handle, form) = String(Blob(written(graph_or_executable, form)))
parse_graph(context, json) = Graph(parsed(context, json))
load(context, path) = Executable(out(Raw) do result
    @ccall lib.kiln_executable_open(context::Raw, path::Chars, sizeof(path)::UInt64, C_NULL::Raw, result::Ptr{Raw})::Raw
end)

function Base.String(blob::Blob)
    size = Ref{UInt64}()
    data = @ccall lib.kiln_blob_data(blob::Raw, size::Ptr{UInt64})::Chars
    return unsafe_string(data, size[])
end

describe(graph::Graph) = Report(out(Raw) do result
    @ccall lib.kiln_graph_describe(graph::Raw, result::Ptr{Raw})::Raw
end)
report(context::Context) = Report(out(Raw) do result
    @ccall lib.kiln_context_report(context::Raw, result::Ptr{Raw})::Raw
end)
Base.close(context::Context) = check(@ccall lib.kiln_context_close(context::Raw)::Raw)
unregister(context, id) = check(@ccall lib.kiln_pass_unregister(context::Raw, id::UInt64)::Raw)
load_plugin(context, path) =
    check(@ccall lib.kiln_plugin_load(context::Raw, path::Chars, sizeof(path)::UInt64, C_NULL::Raw)::Raw)
save(executable, path) =
    check(@ccall lib.kiln_executable_save(executable::Raw, path::Chars, sizeof(path)::UInt64, C_NULL::Raw)::Raw)

# An executable and the report of how it was made.
function compile(context, graph; values...)
    options, made = Options(; values...), Ref{Raw}(C_NULL)
    executable = out(Raw) do result
        @ccall lib.kiln_compile(context::Raw, graph::Raw, options::Raw, result::Ptr{Raw}, made::Ptr{Raw})::Raw
    end
    return Executable(executable), Report(made[])
end

# ---- arrays

# Floats that Julia has no type for, by their bits.
struct BFloat16
    bits::UInt16
end
struct F8E4M3FN
    bits::UInt8
end
struct F8E5M2
    bits::UInt8
end

# DLPack's code of what an array holds.
code_of(::Type{<:Signed}) = 0
code_of(::Type{<:Unsigned}) = 1
code_of(::Type{<:AbstractFloat}) = 2
code_of(::Type{BFloat16}) = 4
code_of(::Type{Bool}) = 6
code_of(::Type{F8E4M3FN}) = 10
code_of(::Type{F8E5M2}) = 12

# Lends `array` to `use` as a descriptor: its own memory, its dimensions in reverse.
function lend(use, array::Array{T}) where T
    shape = collect(Int64, reverse(size(array)))
    GC.@preserve array shape begin
        use(Ref(DLTensor(pointer(array), 1, 0, ndims(array), code_of(T), 8 * sizeof(T), 1, pointer(shape), C_NULL, 0)))
    end
end

function bind!(call::Call, name, array::Array)
    lend(array) do tensor
        check(@ccall lib.kiln_call_bind(call::Raw, slot(call, name)::UInt32, tensor::Ptr{DLTensor})::Raw)
    end
    call.bound[name] = array
end

# Inputs, then outputs. The first of them is lent, then the others inside of that.
run!(call::Call, arrays::Array...) = run_lent(call, Ref{DLTensor}[], arrays...)

function run_lent(call, lent, array::Array, others::Array...)
    lend(array) do tensor
        run_lent(call, [lent; tensor], others...)
    end
end

function run_lent(call, lent)
    GC.@preserve lent begin
        tensors = [Base.unsafe_convert(Ptr{DLTensor}, each) for each in lent]
        check(@ccall lib.kiln_call_run(call::Raw, tensors::Ptr{Ptr{DLTensor}}, length(lent)::UInt64, C_NULL::Raw)::Raw)
    end
end

# ---- callbacks. Kiln gets an object's address as `user`; `held` keeps the object alive until Kiln calls `destroy`.

abstract type Held end
const held = IdDict{Held, Nothing}()

# A graph pass in Julia: `rewrite` takes a Rewriter and returns how often it rewrote.
mutable struct Pass <: Held
    name::String
    rewrite::Function
    uuid::Union{Vector{UInt8}, Nothing}
    runs::Int
    destroyed::Int
end
Pass(name, rewrite, uuid = nothing) = Pass(name, rewrite, uuid, 0, 0)

# A function in Julia that runs nodes: `map!` gets an operand's elements and those of a result to fill. `arrays` are both in
# a signature: ("0[n]", "2[n]").
mutable struct Map <: Held
    name::String
    arrays::Tuple{String, String}
    map!::Function
    uuid::Union{Vector{UInt8}, Nothing}
    runs::Int
    destroyed::Int
end
Map(name, arrays, map!, uuid = nothing) = Map(name, arrays, map!, uuid, 0, 0)

# An op in Julia, of f32, with one operand and one result: `infer` takes an OpCall, `map!` is as a Map's.
mutable struct Op <: Held
    schema::String
    infer::Function
    map!::Function
    uuid::Union{Vector{UInt8}, Nothing}
    runs::Int
    destroyed::Int
end
Op(schema, infer, map!, uuid = nothing) = Op(schema, infer, map!, uuid, 0, 0)

# Receives a context's events: `event` takes the text and returns whether to cancel.
mutable struct Listener <: Held
    event::Function
    destroyed::Int
end
Listener(event) = Listener(event, 0)

function run_pass(user::Ptr{Cvoid}, call::Raw)::Raw
    try
        pass = unsafe_pointer_to_objref(user)::Pass
        pass.runs += 1
        rewrites = pass.rewrite(Rewriter(call))
        return @ccall lib.kiln_pass_done(call::Raw, rewrites::UInt64)::Raw
    catch problem   # must not unwind through C
        return error_of(problem)
    end
end

function error_of(problem)::Raw
    words = sprint(showerror, problem)
    return @ccall lib.kiln_error_create(EXCEPTION::UInt32, words::Chars, sizeof(words)::UInt64, C_NULL::Raw)::Raw
end

function run_map(from::Ptr{Float32}, to::Ptr{Float32}, count::Int64, user::Ptr{Cvoid})::Raw
    try
        map = unsafe_pointer_to_objref(user)::Map
        map.runs += 1
        map.map!(unsafe_wrap(Array, from, count), unsafe_wrap(Array, to, count))
        return C_NULL
    catch problem
        return error_of(problem)
    end
end

function infer_op(user::Ptr{Cvoid}, call::Raw)::Raw
    try
        op = unsafe_pointer_to_objref(user)::Op
        op.infer(OpCall(call))
        return C_NULL
    catch problem
        return error_of(problem)
    end
end

function run_op(user::Ptr{Cvoid}, state::Raw, arrays::Ptr{Ptr{DLTensor}}, count::UInt64, options::Raw)::Raw
    try
        op = unsafe_pointer_to_objref(user)::Op
        op.runs += 1
        op.map!([floats_of(unsafe_load(unsafe_load(arrays, i))) for i in 1:count]...)
        return C_NULL
    catch problem
        return error_of(problem)
    end
end

# An array in Kiln's memory: its dimensions in reverse.
floats_of(tensor::DLTensor) =
    unsafe_wrap(Array, Ptr{Float32}(tensor.data), Tuple(reverse(unsafe_wrap(Array, tensor.shape, tensor.ndim))))

function send_event(user::Ptr{Cvoid}, kind::UInt32, words::Chars, size::UInt64)::Int32
    try
        listener = unsafe_pointer_to_objref(user)::Listener
        return listener.event(unsafe_string(words, size))
    catch
        return 1   # all that an event can say: cancel
    end
end

function let_go(user::Ptr{Cvoid})::Cvoid
    owner = unsafe_pointer_to_objref(user)::Held
    delete!(held, owner)
    owner.destroyed += 1
    return
end

# Kiln takes `owner` over inside `take`; when it refuses, it is ours still.
function handing_over(take, owner::Held)
    held[owner] = nothing
    try
        return take(pointer_from_objref(owner), @cfunction(let_go, Cvoid, (Ptr{Cvoid},)))
    catch
        delete!(held, owner)
        rethrow()
    end
end

# The id to unregister the pass by.
function register(context::Context, pass::Pass)
    name, uuid = pass.name, pass.uuid
    run = @cfunction(run_pass, Raw, (Ptr{Cvoid}, Raw))
    GC.@preserve name uuid handing_over(pass) do user, destroy
        request = Ref(PassRequest(sizeof(PassRequest), STAGE_POST_GRAD, 0, 0, uuid === nothing ? 0 : PASS_UUID_SUFFICES,
                                  0, pointer(name), sizeof(name), C_NULL, 0,
                                  uuid === nothing ? Chars(C_NULL) : pointer(uuid), C_NULL, 0, user, run, C_NULL, destroy))
        out(UInt64) do id
            @ccall lib.kiln_pass_register(context::Raw, request::Ptr{PassRequest}, C_NULL::Raw, id::Ptr{UInt64})::Raw
        end
    end
end

function register(context::Context, map::Map)
    name, uuid = map.name, map.uuid
    signature = "error (f32 data $(map.arrays[1]), f32 data $(map.arrays[2]), i64 n, user)"
    run = @cfunction(run_map, Raw, (Ptr{Float32}, Ptr{Float32}, Int64, Ptr{Cvoid}))
    GC.@preserve name uuid signature handing_over(map) do user, destroy
        request = Ref(FunctionRequest(sizeof(FunctionRequest), uuid === nothing ? 0 : FUNCTION_UUID_SUFFICES, pointer(name),
                                      sizeof(name), C_NULL, 0, pointer(signature), sizeof(signature),
                                      uuid === nothing ? Chars(C_NULL) : pointer(uuid), run, C_NULL, 0, C_NULL, 0, user,
                                      destroy))
        out(UInt64) do id
            @ccall lib.kiln_function_register(context::Raw, request::Ptr{FunctionRequest}, id::Ptr{UInt64})::Raw
        end
    end
end

# The op's number, which is the context's for good.
function register(context::Context, op::Op)
    schema, uuid = op.schema, op.uuid
    infer = @cfunction(infer_op, Raw, (Ptr{Cvoid}, Raw))
    run = @cfunction(run_op, Raw, (Ptr{Cvoid}, Raw, Ptr{Ptr{DLTensor}}, UInt64, Raw))
    GC.@preserve schema uuid handing_over(op) do user, destroy
        request = Ref(OpRequest(sizeof(OpRequest), uuid === nothing ? 0 : OP_UUID_SUFFICES, pointer(schema), sizeof(schema),
                                uuid === nothing ? Chars(C_NULL) : pointer(uuid), user, infer, C_NULL, C_NULL, run, C_NULL,
                                destroy))
        out(UInt32) do number
            @ccall lib.kiln_op_register(context::Raw, request::Ptr{OpRequest}, number::Ptr{UInt32})::Raw
        end
    end
end

function Context(listener::Union{Listener, Nothing} = nothing; values...)
    options = Options(; values...)
    create(sink) = Context(out(Raw) do result
        @ccall lib.kiln_context_create(options::Raw, sink::Ptr{EventSink}, result::Ptr{Raw})::Raw
    end)
    listener === nothing && return create(C_NULL)
    event = @cfunction(send_event, Int32, (Ptr{Cvoid}, UInt32, Chars, UInt64))
    return handing_over(listener) do user, destroy
        create(Ref(EventSink(sizeof(EventSink), 0, user, event, destroy)))
    end
end

# What infer knows of a node: types of operands. It tells those of results.
struct OpCall
    raw::Raw
end

dtype(call::OpCall, operand) = out(UInt32) do result
    @ccall lib.kiln_op_call_dtype(call.raw::Raw, operand::UInt32, result::Ptr{UInt32})::Raw
end

function dims(call::OpCall, operand)
    read(found) = out(UInt64) do rank
        @ccall lib.kiln_op_call_dims(call.raw::Raw, operand::UInt32, found::Ptr{Dim}, length(found)::UInt64,
                                     rank::Ptr{UInt64})::Raw
    end
    found = Vector{Dim}(undef, read(Dim[]))
    read(found)
    return found
end

tell_result(call::OpCall, index, dtype, dims) = GC.@preserve dims begin
    told = Ref(ResultType(sizeof(ResultType), dtype, length(dims), 0, pointer(dims), C_NULL))
    check(@ccall lib.kiln_op_call_result(call.raw::Raw, index::UInt32, told::Ptr{ResultType})::Raw)
end

# The edit of a pass's graph. A node is a number, a value is node << 32 | output.
struct Rewriter
    context::Raw
    edit::Raw
    graph::Raw
    function Rewriter(call::Raw)
        context = @ccall lib.kiln_pass_context(call::Raw)::Raw
        edit = @ccall lib.kiln_pass_edit(call::Raw)::Raw
        return new(context, edit, @ccall lib.kiln_edit_view(edit::Raw)::Raw)
    end
end

function nodes(graph::Rewriter)
    read(found) = out(UInt64) do count
        @ccall lib.kiln_graph_nodes(graph.graph::Raw, found::Ptr{UInt64}, length(found)::UInt64, count::Ptr{UInt64})::Raw
    end
    found = Vector{UInt64}(undef, read(UInt64[]))
    read(found)
    return found
end

op(graph::Rewriter, name) = out(UInt32) do result
    @ccall lib.kiln_op_find(graph.context::Raw, name::Chars, sizeof(name)::UInt64, result::Ptr{UInt32})::Raw
end
is_op(graph::Rewriter, node, name) = op(graph, name) == @ccall lib.kiln_node_op(graph.graph::Raw, node::UInt64)::UInt32
input(graph::Rewriter, node, index) =
    @ccall lib.kiln_node_input(graph.graph::Raw, node::UInt64, index::UInt32)::UInt64
substitute!(graph::Rewriter, from, to) =
    check(@ccall lib.kiln_edit_replace(graph.edit::Raw, from::UInt64, to::UInt64)::Raw)

constant(graph::Rewriter, value) = lend(fill(Float32(value))) do scalar
    out(UInt64) do result
        @ccall lib.kiln_edit_constant(graph.edit::Raw, C_NULL::Chars, 0::UInt64, scalar::Ptr{DLTensor},
                                      result::Ptr{UInt64})::Raw
    end
end

function add(graph::Rewriter, name, inputs...)
    node = out(UInt64) do result
        @ccall lib.kiln_edit_add(graph.edit::Raw, op(graph, name)::UInt32, C_NULL::Chars, 0::UInt64,
                                 UInt64[inputs...]::Ptr{UInt64}, length(inputs)::UInt64, C_NULL::Raw, 0::UInt64,
                                 result::Ptr{UInt64})::Raw
    end
    return node << 32
end

end
