//! A plugin that uses all of the module that `kiln plugin new --lang rust` writes, and fails in each way that it can.
mod kiln;
use kiln::{fail, Array, ArrayMut, Attr, Backend, BackendCall, Decomposition, Edit, Graph, Match, Node, Op, OpCall, Pass};
use kiln::{Pattern, Result, Rewriter, Run, Setup};

kiln::entry!("author", kiln::FEATURE_OPS | kiln::FEATURE_BACKENDS | kiln::FEATURE_PATTERNS, setup);

/// Tells that the host let go of what captured it.
struct Witness;
impl Drop for Witness {
    fn drop(&mut self) {
        eprintln!("dropped");
    }
}

fn panics(graph: &mut Rewriter) -> Result<u64> {
    let empty: Vec<u64> = vec![];
    Ok(empty[graph.nodes()?.len()])
}
fn fails(_: &mut Rewriter) -> Result<u64> {
    fail(kiln::UNIMPLEMENTED, "there is nothing to do")
}
fn asks_for_an_op_that_is_not_there(graph: &mut Rewriter) -> Result<u64> {
    graph.op("nge").map(|_| 1)
}
fn asks_for_another_kind(graph: &mut Rewriter) -> Result<u64> {
    graph.option::<f64>("by").map(|_| 1)
}
fn misshapes(graph: &mut Rewriter) -> Result<u64> {
    graph.add_constant(&[2, 2], &[1f32]).map(|_| 1)
}
fn replaces_by_another_type(graph: &mut Rewriter) -> Result<u64> {
    let (y, sum) = (graph.outputs()?[0], graph.op("sum")?);
    let total = graph.add(sum, &[y], &[])?;
    graph.replace(y, total).map(|_| 1)
}
fn reads_the_clock(graph: &mut Rewriter) -> Result<u64> {
    graph.uncacheable("it reads the clock").map(|_| 0)
}
fn rewrites_by_patterns(graph: &mut Rewriter) -> Result<u64> {
    graph.apply_patterns()
}

/// Tells what it sees of the graph.
fn looks(graph: &mut Rewriter) -> Result<u64> {
    for node in graph.nodes()? {
        let value = node.result(0);
        let mut line = format!("{} kind {} dtype {}", graph.name(node)?, graph.kind(node), graph.dtype(value)?);
        line += &format!(" rank {} uses {}", graph.dims(value)?.len(), graph.use_count(value));
        line += &format!(" users {} operands {:?}", graph.users(value)?.len(), graph.operands(node).len());
        if graph.kind(node) == kiln::NODE_CONSTANT {
            let array = graph.constant(node)?;
            line += &format!(" {:?} {:?} {}", array.shape(), array.read::<f32>()?, array.read::<i32>().unwrap_err());
        }
        for (name, attr) in graph.attrs(node)?.into_iter().chain(graph.annotations(node)?) {
            line += &format!(" {name}={attr:?}");
        }
        graph.warn(&line)?;
    }
    let sizes = (graph.inputs()?.len(), graph.parameters()?.len(), graph.outputs()?.len());
    graph.warn(&format!("signature {sizes:?}"))?;
    graph.note("it only looks").map(|_| 0)
}

/// y * by * (rank + 1)
fn scales(graph: &mut Rewriter) -> Result<u64> {
    let (mul, y) = (graph.op("mul")?, graph.outputs()?[0]);
    let rank = graph.query::<i64>("host.rank")?.unwrap_or(0);
    let factor = (graph.option::<i64>("by")? * (rank + 1)) as f32;
    let texts = graph.option::<Vec<String>>("names")?;
    let factor = graph.add_constant(&[], &[factor])?;
    let scaled = graph.add(mul, &[y, factor], &[])?;
    let marks =
        [("host.names", Attr::Texts(texts)), ("host.sizes", Attr::I64s(vec![4, 5])), ("host.on", Attr::Bool(true))];
    graph.annotate(scaled.node(), &marks)?;
    graph.annotate(scaled.node(), &[("host.on", Attr::None)])?;
    graph.set_outputs(&[scaled])?;
    Ok(1)
}

const HALVES: &str = r#"{"name": "author.halves", "args": [{"name": "x", "dtypes": ["f32"]}], "results": ["low", "high"],
    "samples": [{"name": "even", "inputs": [{"dtype": "f32", "shape": [6]}]}]}"#;
const TWICE: &str = r#"{"name": "author.twice", "args": [{"name": "x", "dtypes": ["f32"]}], "results": ["y"]}"#;

fn infer_halves(call: &OpCall) -> Result<()> {
    let size = call.dims(0)?[0];
    let half = call.dim(&format!("({}) // 2", call.text(size)?))?;
    let both = call.dim(&format!("2 * ({})", call.text(half)?))?;
    call.require_equal(size, both, "x dim 0 and twice its half")?;
    call.result(0, call.dtype(0)?, &[half])?;
    call.result(1, call.dtype(0)?, &[half])
}
fn open_halves(_: &OpCall) -> Result<Run> {
    let mut runs = 0;
    Ok(Box::new(move |operands, results| {
        runs += 1;
        let x = operands[0].read::<f32>()?;
        assert!(x[0] < 100.0, "{} is too much, in run {runs}", x[0]);
        let (low, high) = x.split_at(x.len() / 2);
        results[0].write()?.copy_from_slice(low);
        results[1].write()?.copy_from_slice(high);
        results[1].write::<i64>().map_or(Ok(()), |_| fail(kiln::INTERNAL, "it is of another type"))
    }))
}
fn infer_twice(call: &OpCall) -> Result<()> {
    call.result(0, call.dtype(0)?, &call.dims(0)?)
}
fn decompose_twice(node: &mut Decomposition) -> Result<()> {
    let (add, x) = (node.op("add")?, node.operand(0));
    let y = node.add(add, &[x, x], &[])?;
    node.give(0, y)
}

struct Negates(kiln::OpId);
impl Backend for Negates {
    type Program = f32;
    const NAME: &'static str = "author";
    const VERSION: &'static str = "1";
    const UUID: Option<[u8; 16]> = Some(*b"author's backend");
    const FLAGS: u32 = kiln::BACKEND_SYMBOLIC;

    fn options() -> Vec<kiln::Named<'static>> {
        vec![("by", Attr::I64(-1))]
    }
    fn target(&self, call: &BackendCall) -> Result<()> {
        call.key(b"a library's version")
    }
    fn takes(&self, call: &BackendCall, graph: &Graph, node: Node) -> Result<bool> {
        match graph.is(node, self.0, &[]) {
            true => Ok(true),
            false => call.refuse("it only negates"),
        }
    }
    fn compile(&self, call: &BackendCall, _: &Graph) -> Result<Vec<u8>> {
        let by = call.option::<i64>("by")?;
        assert!(by != 0, "by is to be another number");
        Ok((by as f32).to_le_bytes().to_vec())
    }
    fn load(&self, bytes: &[u8]) -> Result<f32> {
        bytes
            .try_into()
            .map_or_else(|_| fail(kiln::CORRUPT, "the bytes are no number"), |bytes| Ok(f32::from_le_bytes(bytes)))
    }
    fn run(&self, by: &f32, arrays: &[Array], results: &mut [ArrayMut]) -> Result<()> {
        let x = arrays[0].read::<f32>()?;
        for (y, x) in results[0].write::<f32>()?.iter_mut().zip(x) {
            *y = by * x;
        }
        if *by == 7.0 {
            panic!("no sevens");
        }
        Ok(())
    }
}

const PATTERN: &str = r#"{"kiln": 1, "pattern": "twice negated", "captures": [{"name": "x"}],
    "nodes": [{"name": "inner", "op": "neg", "inputs": ["x"]}, {"name": "outer", "op": "neg", "inputs": ["inner"]}],
    "outputs": ["outer"], "replacement": {"nodes": [], "outputs": ["x"]}}"#;

const SCALED: &str = r#"{"kiln": 1, "pattern": "scaled",
    "captures": [{"name": "x"}, {"name": "by", "number": "any"}],
    "nodes": [{"name": "y", "op": "mul", "inputs": ["x", "by"]}], "outputs": ["y"]}"#;

/// x * by becomes by sums of x where `by` is small and whole; panics where it is 13, and fails where it is above.
fn sum_instead(place: &mut Match) -> Result<()> {
    let by = place.matched_number("by")?;
    assert!(by != 13.0, "13 is no number for this");
    if by > 13.0 {
        return fail(kiln::OUT_OF_RANGE, "it is too much");
    }
    if by != by.trunc() || by < 1.0 {
        return Ok(());
    }
    let (x, add) = (place.matched("x")?, place.op("add")?);
    let mut sum = x;
    for _ in 1..by as u32 {
        sum = place.add(add, &[sum, x], &[])?;
    }
    place.replace_match(&[sum])
}

fn setup(context: &Setup) -> Result<()> {
    assert!(!cfg!(broken), "setup is broken");
    let passes: [(&str, fn(&mut Rewriter) -> Result<u64>); 10] = [
        ("panics", panics),
        ("fails", fails),
        ("asks_for_an_op_that_is_not_there", asks_for_an_op_that_is_not_there),
        ("asks_for_another_kind", asks_for_another_kind),
        ("misshapes", misshapes),
        ("replaces_by_another_type", replaces_by_another_type),
        ("reads_the_clock", reads_the_clock),
        ("rewrites_by_patterns", rewrites_by_patterns),
        ("looks", looks),
        ("scales", scales),
    ];
    for (number, (name, rewrite)) in passes.into_iter().enumerate() {
        let witness = Witness;
        let mut uuid = *b"author's passes.";
        uuid[15] = number as u8;
        let captures = move |graph: &mut Rewriter| {
            let _witness = &witness;
            rewrite(graph)
        };
        context.add_pass(Pass {
            options: vec![("by", Attr::I64(2)), ("names", Attr::Texts(vec!["a".into(), String::new()]))],
            patterns: match name {
                "rewrites_by_patterns" => vec![Pattern::new(PATTERN), Pattern::calling(SCALED, sum_instead)],
                _ => vec![],
            },
            ..Pass::new(name, "1", uuid, captures)
        })?;
    }
    let halves = Some(*b"author's halves.");
    context.add_op(Op {
        schema: HALVES,
        uuid: halves,
        flags: 0,
        infer: infer_halves,
        decompose: None,
        open: Some(open_halves),
    })?;
    let twice = Some(*b"author's twice..");
    context.add_op(Op {
        schema: TWICE,
        uuid: twice,
        flags: 0,
        infer: infer_twice,
        decompose: Some(decompose_twice),
        open: None,
    })?;
    context.add_backend(Negates(context.op("neg")?))
}
