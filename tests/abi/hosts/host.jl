# A host of Kiln in Julia: what the ABI promises, seen from a language that only has a C interface to it.
#
#     KILN_LIBRARY=…/libkiln.so julia host.jl PLUGIN GRAPH FOLDER ELEMENT_TYPE FUNCTION OP

include("binding.jl")
using .Kiln
using .Kiln: INVALID_ARGUMENT, NOT_CACHED, CANCELLED, PLUGIN_FAILED

const PLUGIN, FOLDER = ARGS[1], ARGS[3]
const GRAPH, ELEMENT_TYPE, FUNCTION, OP = [read(ARGS[i], String) for i in (2, 4, 5, 6)]
const UUID = Vector{UInt8}("kiln.hosts.julia")
const WEIGHT = Float32[1, -2, 0.5, 3]

# neg(neg(x)) -> x
function drop_double_negation(graph)
    rewrites = 0
    for node in nodes(graph)
        inner = input(graph, node, 0) >> 32
        if is_op(graph, node, "neg") && is_op(graph, inner, "neg")
            substitute!(graph, node << 32, input(graph, inner, 0))
            rewrites += 1
        end
    end
    return rewrites
end

# x + x -> x * 2
function double_by_product(graph)
    rewrites = 0
    for node in nodes(graph)
        x = input(graph, node, 0)
        if is_op(graph, node, "add") && x == input(graph, node, 1)
            substitute!(graph, node << 32, add(graph, "mul", x, constant(graph, 2)))
            rewrites += 1
        end
    end
    return rewrites
end

function passed(name)
    println("ok: ", name)
    flush(stdout)
end

expect(actual, expected) = actual == expected || error("$(repr(actual)), expected $(repr(expected))")
expect_in(part, whole) = occursin(part, whole) || error("$(repr(whole)) does not say $(repr(part))")

# The error that `action` throws.
function fails(action, code)
    try
        action()
    catch problem
        problem isa KilnError || rethrow()
        expect(problem.code, code)
        return problem
    end
    error("it did not fail")
end

# A context with the plugin and passes, the graph in it, and the passes' ids.
function open_session(cache, passes...; listener = nothing)
    context = Context(listener; cache = joinpath(FOLDER, cache))
    load_plugin(context, PLUGIN)
    return context, parse_graph(context, GRAPH), [register(context, pass) for pass in passes]
end

function call_of(executable)
    call = Call(executable)
    bind!(call, "w", WEIGHT)
    return call
end

# y = 2 * -(-(x / sqrt(mean(x * x) + 1/2) * w)) on arrays of our own; y's memory, NaN before, must hold it after.
function run_rows(call, rows)
    x = reshape(Float32[0.25i - 1 for i in 0:4rows-1], 4, rows)   # Kiln's shape: (rows, 4)
    y = fill(NaN32, 4, rows)
    run!(call, x, y)
    expected = 2 .* x ./ sqrt.(sum(x .^ 2, dims = 1) ./ 4 .+ 0.5f0) .* WEIGHT
    all(abs.(y .- expected) .< 1e-5) || error("$y, expected $expected")
    return y
end

# Destroys the handles in the order given: none is left, and what was lent to Kiln is let go of once.
function finish(context, handles...; lent = [])
    foreach(destroy!, handles)
    expect(integer(report(context), "handles.live"), 0)
    destroy!(context)
    expect([each.destroyed for each in lent], ones(Int, length(lent)))
end

function parses_and_loads()
    context, graph, _ = open_session("parse")
    expect(Kiln.abi_major(), 1)
    described = describe(graph)
    expect((text(described, "inputs.0.shape.0"), integer(described, "inputs.0.shape.1")), ("n", 4))
    passed("parses a graph from JSON")
    expect(text(report(context), "plugins.0.name"), "fuse_rms_norm")
    passed("loads a plugin")
    finish(context, graph)
end

function compiles_and_runs()
    own = Pass("drop_double_negation", drop_double_negation, UUID)
    context, graph, _ = open_session("run", own)
    executable, made = compile(context, graph)
    expect([integer(made, "passes_run.$name") for name in ("fuse_rms_norm", "drop_double_negation")], [1, 1])
    expect(occursin("neg", text(executable, "kernels")), false)
    passed("rewrites with a pass of its own, counted by path in the report")

    call = call_of(executable)
    results = run_rows(call, 3), run_rows(call, 8)
    passed("runs at two sizes on its own arrays, the parameter bound once")

    path = joinpath(FOLDER, "artifact.kiln")
    save(executable, path)
    loaded = load(context, path)
    again = call_of(loaded)
    expect((run_rows(again, 3), run_rows(again, 8)), results)
    passed("saves an artifact, loads it, runs to the same values")
    finish(context, loaded, graph, executable, again, call; lent = [own])
end

# Elements of each type, and the numbers that they are.
const ELEMENTS = [
    ("f64", [1.0, -0.5, floatmax(Float64)], [1.0, -0.5, floatmax(Float64)]),
    ("f32", Float32[1, -0.5, 3], [1.0, -0.5, 3.0]),
    ("f16", Float16[1, -0.5, 65504], [1.0, -0.5, 65504.0]),
    ("bf16", BFloat16.([0x3f80, 0xbf00, 0x4380]), [1.0, -0.5, 256.0]),
    ("f8_e4m3fn", F8E4M3FN.([0x38, 0xb0, 0x7e]), [1.0, -0.5, 448.0]),
    ("f8_e5m2", F8E5M2.([0x3c, 0xb8, 0x7b]), [1.0, -0.5, 57344.0]),
    ("i64", Int64[1, -2, 2^62], [1.0, -2.0, 2.0^62]),
    ("i32", Int32[1, -2, typemax(Int32)], [1.0, -2.0, 2147483647.0]),
    ("i16", Int16[1, -2, 32767], [1.0, -2.0, 32767.0]),
    ("i8", Int8[1, -2, 127], [1.0, -2.0, 127.0]),
    ("u64", UInt64[1, 2, typemax(UInt64)], [1.0, 2.0, 2.0^64]),
    ("u32", UInt32[1, 2, typemax(UInt32)], [1.0, 2.0, 4294967295.0]),
    ("u16", UInt16[1, 2, 65535], [1.0, 2.0, 65535.0]),
    ("u8", UInt8[1, 2, 255], [1.0, 2.0, 255.0]),
    ("bool", [true, false, true], [1.0, 0.0, 1.0]),
]

function reads_and_writes_every_type()
    for (dtype, elements, numbers) in ELEMENTS
        context = Context(; cache = "off")
        graph = parse_graph(context, replace(ELEMENT_TYPE, "DTYPE" => dtype))
        executable, _ = compile(context, graph)
        call, twice, number = Call(executable), similar(elements, 6), fill(NaN, 3)
        run!(call, elements, twice, number)
        expect((twice, number), ([elements; elements], numbers))
        finish(context, call, executable, graph)
    end
    passed("reads and writes every element type in its own memory")
end

function caches_with_identity()
    for (lookup, runs) in (("MISS", 1), ("HIT", 0))
        own = Pass("drop_double_negation", drop_double_negation, UUID)
        context, graph, _ = open_session("identity", own)
        executable, made = compile(context, graph)
        expect((text(made, "lookup"), own.runs), (lookup, runs))
        call = call_of(executable)
        run_rows(call, 5)
        if lookup == "HIT"
            expect(member_count(made, "passes_run"), 0)
            passed("with an identity: a miss, then a hit that runs no pass")
            missed = fails(() -> compile(context, graph; require_hit = true, fuse = false), NOT_CACHED)
            expect(missed.reason, "component 'options' differs from the nearest record")
            passed("reads why a strict hit is a miss off the error")
        end
        finish(context, call, executable, graph; lent = [own])
    end
end

function bypasses_without_identity()
    own = Pass("double_by_product", double_by_product)
    context, graph, _ = open_session("bypass", own)
    executable, made = compile(context, graph)
    expect((text(made, "lookup"), integer(made, "passes_run.double_by_product")), ("BYPASS", 1))
    expect_in("double_by_product", text(made, "reason"))
    expect_in("constant 2\n", text(executable, "kernels"))
    call = call_of(executable)
    run_rows(call, 2)
    expect_in("double_by_product", fails(() -> compile(context, graph; strict = true), INVALID_ARGUMENT).message)
    passed("without an identity: a bypass that names the pass, an error when strict")
    finish(context, executable, call, graph; lent = [own])
end

function survives_an_exception()
    function breaks(graph)
        double_by_product(graph)   # given up with the rest
        throw(ArgumentError("no such luck"))
    end
    own = Pass("own", breaks, UUID)
    context, graph, ids = open_session("exception", own)
    before = text(graph, "json")
    problem = fails(() -> compile(context, graph), PLUGIN_FAILED)
    expect(problem.message, "pass 'own' of the host: failed: ArgumentError: no such luck")
    expect(problem.plugin, "the host")
    expect(text(graph, "json"), before)
    own.rewrite = drop_double_negation
    executable, made = compile(context, graph)
    expect(integer(made, "passes_run.own"), 1)
    unregister(context, ids[1])
    expect(own.destroyed, 1)
    call = call_of(executable)
    run_rows(call, 4)
    passed("a pass that throws fails the compile with its message; graph and process live on")
    finish(context, graph, call, executable; lent = [own])
end

# What `make` gives of a function runs a node of the graph: a miss, then a hit; what it throws ends the run with `message`.
function triples(make, cache, json, by, message)
    function triple!(x, y)
        length(x) == 1 && throw(ArgumentError("no such luck"))
        y .= 3 .* x
    end
    for lookup in ("MISS", "HIT")
        own = make(triple!)
        context = Context(; cache = joinpath(FOLDER, cache))
        register(context, own)
        graph = parse_graph(context, json)
        executable, made = compile(context, graph)
        expect((text(made, "lookup"), text(made, "made.partition.fallbacks.0.by")), (lookup, by))
        call = Call(executable)
        for size in (2, 3)
            y = fill(NaN32, size)
            run!(call, fill(0.5f0, size), y)
            expect(y, fill(1.5f0, size))
            expect(fails(() -> run!(call, Float32[1], Float32[0]), PLUGIN_FAILED).message, message)
        end
        expect(own.runs, 4)
        finish(context, graph, executable, call; lent = [own])
    end
end

function calls_a_function()
    triples("function", FUNCTION, "triple", "node 'tripled': [mul] function 'triple': ArgumentError: no such luck") do triple!
        Map("triple", ("0[n]", "2[n]"), triple!, UUID)
    end
    passed("runs a node by a function of its own: a miss, then a hit; what it throws ends that run alone")
end

function brings_an_op()
    schema = """{"name": "host.triple", "args": [{"name": "x", "dtypes": ["f32"]}], "results": ["y"]}"""
    function infer(call)
        length(dims(call, 0)) == 1 || throw(ArgumentError("x is no vector"))
        tell_result(call, 0, dtype(call, 0), dims(call, 0))
    end
    triples("op", OP, "function", "node 'tripled': [host.triple] ArgumentError: no such luck") do triple!
        Op(schema, infer, triple!, UUID)
    end
    own = Op(schema, infer, identity)
    context = Context(; cache = "off")
    register(context, own)
    refused = fails(() -> parse_graph(context, replace(OP, "[\"n\"]" => "[\"n\", 2]")), PLUGIN_FAILED)
    expect_in("node 'tripled': [host.triple] ArgumentError: x is no vector", refused.message)
    finish(context; lent = [own])
    passed("brings an op: a miss, then a hit; what it throws refuses the node, or ends that run alone")
end

function cancels_from_an_event()
    phases = String[]
    listener = Listener() do phase
        push!(phases, phase)
        return length(phases) == 3
    end
    context, graph, _ = open_session("cancel"; listener = listener)
    fails(() -> compile(context, graph), CANCELLED)
    expect(length(phases), 3)
    executable, _ = compile(context, graph)
    passed("an event cancels a compile, and the next one works")
    finish(context, graph, executable; lent = [listener])
end

function outlives_its_context()
    own = Pass("drop_double_negation", drop_double_negation, UUID)
    context, graph, _ = open_session("order", own)
    executable, _ = compile(context, graph)
    first, second = call_of(executable), Call(executable)
    destroy!(executable)
    close(context)
    expect((own.destroyed, integer(report(context), "handles.live")), (1, 3))
    destroy!(second)
    destroy!(context)
    run_rows(first, 6)
    expect(count("= neg(", text(graph, "text")), 2)
    destroy!(first)
    destroy!(graph)
    expect((own.destroyed, isempty(Kiln.held)), (1, true))
    passed("frees everything in any order: no handle lives, each destroy ran once")
end

for check in (parses_and_loads, compiles_and_runs, reads_and_writes_every_type, caches_with_identity,
              bypasses_without_identity, survives_an_exception, calls_a_function, brings_an_op, cancels_from_an_event,
              outlives_its_context)
    check()
end
