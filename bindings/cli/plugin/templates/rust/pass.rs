//! A pass of Kiln: neg(neg(x)) becomes x. Change what is marked 1 to 3; `kiln/` has what it is written with.
mod kiln;
use kiln::{Edit, Pass, Result, Rewriter, Setup};

// 1. The name: of the plugin, of the pass.
const NAME: &str = "template";
kiln::entry!(NAME, 0, setup);

// 2. Its identity: 16 random bytes of your own (`kiln plugin uuid --lang rust`). With it, what the pass makes is cached;
// raise VERSION when that changes.
const UUID: [u8; 16] = [0x6f, 0x1d, 0x83, 0x5a, 0x09, 0xc4, 0x4e, 0x27, 0xb3, 0x90, 0x2a, 0xee, 0x71, 0x58, 0xd6, 0x0c];
const VERSION: &str = "1";

/// 3. What the pass does; it returns how many places it rewrote. Nodes keep their numbers while the graph changes, and
/// what nothing uses any more is dropped by the host.
fn rewrite(graph: &mut Rewriter) -> Result<u64> {
    let neg = graph.op("neg")?;
    let mut rewrites = 0;
    for node in graph.nodes()? {
        let inner = graph.operand(node, 0).node();
        if graph.is(node, neg, &[]) && graph.is(inner, neg, &[]) {
            let x = graph.operand(inner, 0);
            graph.replace(node.result(0), x)?;
            rewrites += 1;
        }
    }
    Ok(rewrites)
}

/// Once per context.
fn setup(context: &Setup) -> Result<()> {
    context.add_pass(Pass::new(NAME, VERSION, UUID, rewrite))
}
