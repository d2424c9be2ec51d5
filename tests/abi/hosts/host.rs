//! A host of Kiln in Rust: what the ABI promises, seen from a language that only has a C interface to it.
//!
//!     host PLUGIN GRAPH FOLDER ELEMENT_TYPE FUNCTION OP

mod binding;
mod ffi;

use binding::*;
use ffi::{CANCELLED, INVALID_ARGUMENT, NOT_CACHED, PLUGIN_FAILED};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::Arc;
use std::{env, fs, panic};

const UUID: [u8; 16] = *b"kiln.hosts.rust\x01";
const WEIGHT: [f32; 4] = [1.0, -2.0, 0.5, 3.0];

/// neg(neg(x)) -> x
fn drop_double_negation(graph: &Rewriter) -> Result<u64> {
    let (neg, mut rewrites) = (graph.op("neg")?, 0);
    for node in graph.nodes()? {
        let inner = graph.input(node, 0) >> 32;
        if graph.is(node, neg) && graph.is(inner, neg) {
            graph.replace(node << 32, graph.input(inner, 0))?;
            rewrites += 1;
        }
    }
    Ok(rewrites)
}

/// x + x -> x * 2
fn double_by_product(graph: &Rewriter) -> Result<u64> {
    let (add, mul, mut rewrites) = (graph.op("add")?, graph.op("mul")?, 0);
    for node in graph.nodes()? {
        let x = graph.input(node, 0);
        if graph.is(node, add) && x == graph.input(node, 1) {
            graph.replace(node << 32, graph.add(mul, &[x, graph.constant(2.0)?])?)?;
            rewrites += 1;
        }
    }
    Ok(rewrites)
}

/// How often a callback ran, and how often what it owned was dropped.
#[derive(Default)]
struct Counts {
    runs: AtomicU32,
    dropped: AtomicU32,
}
struct Owned(Arc<Counts>);
impl Drop for Owned {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, SeqCst);
    }
}

fn counted(rewrite: impl Fn(&Rewriter) -> Result<u64> + Send + Sync + 'static) -> (Rewrite, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let owned = Owned(counts.clone());
    let counting = move |graph: &Rewriter| {
        owned.0.runs.fetch_add(1, SeqCst);
        rewrite(graph)
    };
    (Box::new(counting), counts)
}

/// What each check begins with: plugin and graph, and where files go.
struct Session {
    plugin: String,
    graph: String,
    element_type: String,
    function: String,
    op: String,
    folder: String,
}

impl Session {
    fn options(&self, cache: &str) -> Result<Options> {
        Options::new()?.text("cache", &format!("{}/{}", self.folder, cache))
    }
    fn open(&self, cache: &str) -> Result<(Context, Graph)> {
        let context = Context::new(&self.options(cache)?)?;
        context.load_plugin(&self.plugin)?;
        let graph = context.parse(&self.graph)?;
        Ok((context, graph))
    }
}

fn passed(name: &str) {
    println!("ok: {}", name);
}

fn contains(whole: &str, part: &str) {
    assert!(whole.contains(part), "'{}' does not say '{}'", whole, part);
}

fn fails<T>(outcome: Result<T>, code: u32) -> Error {
    let error = outcome.err().expect("it did not fail");
    assert_eq!(error.code, code, "{}", error);
    error
}

fn weight() -> Array {
    Array::new(&[4], WEIGHT.to_vec())
}

fn call_of<'a>(executable: &Executable, weight: &'a Array) -> Result<Call<'a>> {
    let mut call = Call::new(executable)?;
    call.bind("w", weight)?;
    Ok(call)
}

/// y = 2 * -(-(x / sqrt(mean(x * x) + 1/2) * w)) on arrays of our own; y's memory, NaN before, must hold it after.
fn run_rows(call: &mut Call, rows: usize) -> Result<Vec<f32>> {
    let x = Array::new(&[rows as i64, 4], (0..rows * 4).map(|i| 0.25 * i as f32 - 1.0).collect());
    let mut y = Array::new(&[rows as i64, 4], vec![f32::NAN; rows * 4]);
    let memory = y.values.as_ptr();
    call.run(&[&x], &mut [&mut y])?;
    assert_eq!(y.values.as_ptr(), memory);
    for (ours, results) in x.values.chunks(4).zip(y.values.chunks(4)) {
        let scale = 2.0 / (ours.iter().map(|value| value * value).sum::<f32>() / 4.0 + 0.5).sqrt();
        for ((value, weight), result) in ours.iter().zip(WEIGHT).zip(results) {
            let expected = value * scale * weight;
            assert!((expected - result).abs() < 1e-5, "{}, expected {}", result, expected);
        }
    }
    Ok(y.values)
}

/// Of what was made from the context, nothing is left; then the context goes, and with it each pass, once.
fn end(context: Context, passes: &[&Counts]) -> Result<()> {
    assert_eq!(context.report()?.i64("handles.live")?, 0);
    drop(context);
    for counts in passes {
        assert_eq!(counts.dropped.load(SeqCst), 1);
    }
    Ok(())
}

fn parses_and_loads(session: &Session) -> Result<()> {
    let (context, graph) = session.open("parse")?;
    assert_eq!(abi_major(), 1);
    let described = graph.describe()?;
    assert_eq!((described.text("inputs.0.shape.0")?.as_str(), described.i64("inputs.0.shape.1")?), ("n", 4));
    passed("parses a graph from JSON");
    assert_eq!(context.report()?.text("plugins.0.name")?, "fuse_rms_norm");
    passed("loads a plugin");
    drop(graph);
    end(context, &[])
}

fn compiles_and_runs(session: &Session) -> Result<()> {
    let (weight, (rewrite, counts)) = (weight(), counted(drop_double_negation));
    let (context, graph) = session.open("run")?;
    context.register("drop_double_negation", Some(&UUID), rewrite)?;
    let (executable, report) = context.compile(&graph, &Options::new()?)?;
    assert_eq!(report.i64("passes_run.fuse_rms_norm")?, 1);
    assert_eq!(report.i64("passes_run.drop_double_negation")?, 1);
    assert!(!executable.text("kernels")?.contains("neg"));
    passed("rewrites with a pass of its own, counted by path in the report");

    let mut call = call_of(&executable, &weight)?;
    let results = (run_rows(&mut call, 3)?, run_rows(&mut call, 8)?);
    passed("runs at two sizes on its own arrays, the parameter bound once");

    let path = format!("{}/artifact.kiln", session.folder);
    executable.save(&path)?;
    let loaded = context.load(&path)?;
    let mut again = call_of(&loaded, &weight)?;
    assert_eq!((run_rows(&mut again, 3)?, run_rows(&mut again, 8)?), results);
    passed("saves an artifact, loads it, runs to the same values");
    drop((loaded, graph, executable, again, call));
    end(context, &[&counts])
}

/// Some elements, twice, and as numbers.
fn read_and_write<T>(session: &Session, elements: [T; 3], numbers: [f64; 3]) -> Result<()>
where
    T: Element + Default + PartialEq + std::fmt::Debug,
{
    let context = Context::new(&Options::new()?.text("cache", "off")?)?;
    let graph = context.parse(&session.element_type.replace("DTYPE", T::NAME))?;
    let (executable, _) = context.compile(&graph, &Options::new()?)?;
    let x = Array::new(&[3], elements.to_vec());
    let mut twice = Array::new(&[6], vec![T::default(); 6]);
    let mut number = Array::new(&[3], vec![f64::NAN; 3]);
    Call::new(&executable)?.run(&[&x], &mut [&mut twice, &mut number])?;
    assert_eq!((twice.values, number.values), (elements.repeat(2), numbers.to_vec()), "{}", T::NAME);
    drop((executable, graph));
    end(context, &[])
}

fn reads_and_writes_every_type(session: &Session) -> Result<()> {
    read_and_write(session, [1.0, -0.5, f64::MAX], [1.0, -0.5, f64::MAX])?;
    read_and_write(session, [1.0f32, -0.5, 3.0], [1.0, -0.5, 3.0])?;
    read_and_write(session, [F16(0x3c00), F16(0xb800), F16(0x7bff)], [1.0, -0.5, 65504.0])?;
    read_and_write(session, [Bf16(0x3f80), Bf16(0xbf00), Bf16(0x4380)], [1.0, -0.5, 256.0])?;
    read_and_write(session, [F8E4m3fn(0x38), F8E4m3fn(0xb0), F8E4m3fn(0x7e)], [1.0, -0.5, 448.0])?;
    read_and_write(session, [F8E5m2(0x3c), F8E5m2(0xb8), F8E5m2(0x7b)], [1.0, -0.5, 57344.0])?;
    read_and_write(session, [1i64, -2, 1 << 62], [1.0, -2.0, (1i64 << 62) as f64])?;
    read_and_write(session, [1i32, -2, i32::MAX], [1.0, -2.0, i32::MAX as f64])?;
    read_and_write(session, [1i16, -2, i16::MAX], [1.0, -2.0, 32767.0])?;
    read_and_write(session, [1i8, -2, i8::MAX], [1.0, -2.0, 127.0])?;
    read_and_write(session, [1u64, 2, u64::MAX], [1.0, 2.0, u64::MAX as f64])?;
    read_and_write(session, [1u32, 2, u32::MAX], [1.0, 2.0, u32::MAX as f64])?;
    read_and_write(session, [1u16, 2, u16::MAX], [1.0, 2.0, 65535.0])?;
    read_and_write(session, [1u8, 2, u8::MAX], [1.0, 2.0, 255.0])?;
    read_and_write(session, [true, false, true], [1.0, 0.0, 1.0])?;
    passed("reads and writes every element type in its own memory");
    Ok(())
}

fn caches_with_identity(session: &Session) -> Result<()> {
    for (lookup, runs) in [("MISS", 1), ("HIT", 0)] {
        let (weight, (rewrite, counts)) = (weight(), counted(drop_double_negation));
        let (context, graph) = session.open("identity")?;
        context.register("drop_double_negation", Some(&UUID), rewrite)?;
        let (executable, report) = context.compile(&graph, &Options::new()?)?;
        assert_eq!((report.text("lookup")?.as_str(), counts.runs.load(SeqCst)), (lookup, runs));
        let mut call = call_of(&executable, &weight)?;
        run_rows(&mut call, 5)?;
        if lookup == "HIT" {
            assert_eq!(report.count("passes_run")?, 0);
            passed("with an identity: a miss, then a hit that runs no pass");
            let other = Options::new()?.flag("require_hit", true)?.flag("fuse", false)?;
            let missed = fails(context.compile(&graph, &other), NOT_CACHED);
            assert_eq!(missed.reason, "component 'options' differs from the nearest record");
            passed("reads why a strict hit is a miss off the error");
        }
        drop((call, executable, graph));
        end(context, &[&counts])?;
    }
    Ok(())
}

fn bypasses_without_identity(session: &Session) -> Result<()> {
    let (weight, (rewrite, counts)) = (weight(), counted(double_by_product));
    let (context, graph) = session.open("bypass")?;
    context.register("double_by_product", None, rewrite)?;
    let (executable, report) = context.compile(&graph, &Options::new()?)?;
    assert_eq!((report.text("lookup")?.as_str(), report.i64("passes_run.double_by_product")?), ("BYPASS", 1));
    contains(&report.text("reason")?, "double_by_product");
    contains(&executable.text("kernels")?, "constant 2\n");
    let mut call = call_of(&executable, &weight)?;
    run_rows(&mut call, 2)?;
    let strict = Options::new()?.flag("strict", true)?;
    contains(&fails(context.compile(&graph, &strict), INVALID_ARGUMENT).message, "double_by_product");
    passed("without an identity: a bypass that names the pass, an error when strict");
    drop((executable, call, graph));
    end(context, &[&counts])
}

fn survives_a_panic(session: &Session) -> Result<()> {
    let weight = weight();
    let (rewrite, counts) = counted(|graph| {
        double_by_product(graph)?; // given up with the rest
        panic!("no such {}", "luck")
    });
    let (context, graph) = session.open("panic")?;
    let id = context.register("own", Some(&UUID), rewrite)?;
    let before = graph.text("json")?;
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ())); // this one is meant
    let error = fails(context.compile(&graph, &Options::new()?), PLUGIN_FAILED);
    panic::set_hook(hook);
    assert_eq!(error.message, "pass 'own' of the host: failed: panicked: no such luck");
    assert_eq!(error.plugin, "the host");
    assert_eq!(graph.text("json")?, before);
    assert_eq!(context.report()?.i64("passes_run.threw")?, 1);
    context.unregister(id)?;
    assert_eq!(counts.dropped.load(SeqCst), 1);

    let (executable, report) = context.compile(&graph, &Options::new()?)?;
    assert_eq!(report.i64("passes_run.fuse_rms_norm")?, 1);
    let mut call = call_of(&executable, &weight)?;
    run_rows(&mut call, 4)?;
    passed("a pass that panics fails the compile with its message; graph and process live on");
    drop((graph, call, executable));
    end(context, &[&counts])
}

/// What triples runs a node of the graph: a miss, then a hit; its panic ends the run with `message`.
fn triples(
    session: &Session,
    cache: &str,
    json: &str,
    register: impl Fn(&Context, Map) -> Result<()>,
    by: &str,
    message: &str,
) -> Result<()> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ())); // those that come are meant
    for lookup in ["MISS", "HIT"] {
        let counts = Arc::new(Counts::default());
        let owned = Owned(counts.clone());
        let triple: Map = Box::new(move |x, y| {
            owned.0.runs.fetch_add(1, SeqCst);
            assert!(x.len() != 1, "no such luck");
            y.iter_mut().zip(x).for_each(|(to, from)| *to = 3.0 * from);
        });
        let context = Context::new(&session.options(cache)?)?;
        register(&context, triple)?;
        let graph = context.parse(json)?;
        let (executable, report) = context.compile(&graph, &Options::new()?)?;
        assert_eq!((report.text("lookup")?.as_str(), report.text("made.partition.fallbacks.0.by")?.as_str()), (lookup, by));
        let mut call = Call::new(&executable)?;
        for size in [2, 3] {
            let mut y = Array::new(&[size], vec![f32::NAN; size as usize]);
            call.run(&[&Array::new(&[size], vec![0.5f32; size as usize])], &mut [&mut y])?;
            assert_eq!(y.values, vec![1.5; size as usize]);
            let (one, mut to) = (Array::new(&[1], vec![1.0f32]), Array::new(&[1], vec![0.0f32]));
            assert_eq!(fails(call.run(&[&one], &mut [&mut to]), PLUGIN_FAILED).message, message);
        }
        assert_eq!(counts.runs.load(SeqCst), 4);
        drop((call, graph, executable));
        end(context, &[&counts])?;
    }
    panic::set_hook(hook);
    Ok(())
}

fn calls_a_function(session: &Session) -> Result<()> {
    let register = |context: &Context, triple| context.register_function("triple", ["0[n]", "2[n]"], Some(&UUID), triple).map(|_| ());
    let message = "node 'tripled': [mul] function 'triple': panicked: no such luck";
    triples(session, "function", &session.function, register, "triple", message)?;
    passed("runs a node by a function of its own: a miss, then a hit; a panic ends that run alone");
    Ok(())
}

fn brings_an_op(session: &Session) -> Result<()> {
    let schema = r#"{"name": "host.triple", "args": [{"name": "x", "dtypes": ["f32"]}], "results": ["y"]}"#;
    let register = |context: &Context, map| {
        let infer: Infer = Box::new(|call| {
            let dims = call.dims(0)?;
            assert!(dims.len() == 1, "x is no vector");
            call.result(0, call.dtype(0)?, &dims)
        });
        context.register_op(schema, Some(&UUID), Op { infer, map })?;
        let refused = fails(context.parse(&session.op.replace(r#"["n"]"#, r#"["n", 2]"#)), PLUGIN_FAILED);
        contains(&refused.message, "node 'tripled': [host.triple] panicked: x is no vector");
        Ok(())
    };
    let message = "node 'tripled': [host.triple] panicked: no such luck";
    triples(session, "op", &session.op, register, "function", message)?;
    passed("brings an op: a miss, then a hit; a panic refuses the node, or ends that run alone");
    Ok(())
}

fn cancels_from_an_event(session: &Session) -> Result<()> {
    let counts = Arc::new(Counts::default());
    let owned = Owned(counts.clone());
    let listener: Listener = Box::new(move |_phase| owned.0.runs.fetch_add(1, SeqCst) == 2);
    let context = Context::listening(&session.options("cancel")?, listener)?;
    let graph = context.parse(&session.graph)?;
    fails(context.compile(&graph, &Options::new()?), CANCELLED);
    assert_eq!(counts.runs.load(SeqCst), 3);
    let (executable, _) = context.compile(&graph, &Options::new()?)?;
    passed("an event cancels a compile, and the next one works");
    drop((graph, executable));
    end(context, &[&counts])
}

fn outlives_its_context(session: &Session) -> Result<()> {
    let (weight, (rewrite, counts)) = (weight(), counted(drop_double_negation));
    let (context, graph) = session.open("order")?;
    context.register("drop_double_negation", Some(&UUID), rewrite)?;
    let (executable, _) = context.compile(&graph, &Options::new()?)?;
    let (mut first, second) = (call_of(&executable, &weight)?, Call::new(&executable)?);
    drop(executable);
    context.close()?;
    assert_eq!((counts.dropped.load(SeqCst), context.report()?.i64("handles.live")?), (1, 3));
    drop(second);
    drop(context);
    run_rows(&mut first, 6)?;
    assert_eq!(graph.text("text")?.matches("= neg(").count(), 2);
    drop(first);
    drop(graph);
    assert_eq!(counts.dropped.load(SeqCst), 1);
    passed("frees everything in any order: no handle lives, each destroy ran once");
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = env::args().collect();
    let (graph, element_type) = (fs::read_to_string(&args[2])?, fs::read_to_string(&args[4])?);
    let function = fs::read_to_string(&args[5])?;
    let op = fs::read_to_string(&args[6])?;
    let session = Session { plugin: args[1].clone(), graph, element_type, function, op, folder: args[3].clone() };
    parses_and_loads(&session)?;
    compiles_and_runs(&session)?;
    reads_and_writes_every_type(&session)?;
    caches_with_identity(&session)?;
    bypasses_without_identity(&session)?;
    survives_a_panic(&session)?;
    calls_a_function(&session)?;
    brings_an_op(&session)?;
    cancels_from_an_event(&session)?;
    outlives_its_context(&session)?;
    Ok(())
}
