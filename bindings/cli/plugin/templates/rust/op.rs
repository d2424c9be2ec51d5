//! Two ops of Kiln: change what is marked 1 to 4; `kiln/` has what they are written with.
//!
//!   mine.cube    by * x^3, by a function that is run as a step
//!   mine.swish   x * sigmoid(by * x), by a decomposition, which is compiled together with what is around it
mod kiln;
use kiln::{Decomposition, Edit, Op, OpCall, Result, Run, Setup};

// 1. The name of the plugin; names of ops begin with it, so that they are nobody else's.
kiln::entry!("mine", kiln::FEATURE_OPS, setup);

// 2. Identities: 16 random bytes each, of your own (`kiln plugin uuid --lang rust`).
const CUBE_UUID: [u8; 16] = [0x5c, 0x01, 0x9e, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const SWISH_UUID: [u8; 16] = [0x5c, 0x01, 0x9e, 0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

// 3. Schemas: what is checked before any function is called, and samples, on which tests run the op.
const CUBE: &str = r#"{"name": "mine.cube", "doc": "by * x^3.", "args": [{"name": "x", "dtypes": ["f32"]}],
    "results": ["y"], "attrs": [{"name": "by", "kind": "f64", "default": 1}],
    "samples": [{"name": "rows", "inputs": [{"dtype": "f32", "shape": [3, "n"]}], "sizes": {"n": 5}}]}"#;
const SWISH: &str = r#"{"name": "mine.swish", "doc": "x * sigmoid(by * x).", "args": [{"name": "x", "dtypes": ["f32"]}],
    "results": ["y"], "attrs": [{"name": "by", "kind": "f64", "default": 1}],
    "samples": [{"name": "rows", "inputs": [{"dtype": "f32", "shape": [3, "n"]}], "sizes": {"n": 5}}]}"#;

// 4. The functions. Both results have the type of the operand.
fn infer(call: &OpCall) -> Result<()> {
    call.result(0, call.dtype(0)?, &call.dims(0)?)
}

/// What it returns runs the node: operands, then results, row-major, of as many elements.
fn cube(call: &OpCall) -> Result<Run> {
    let by = call.attr::<f64>("by")? as f32;
    Ok(Box::new(move |operands, results| {
        let x = operands[0].read::<f32>()?;
        for (y, x) in results[0].write::<f32>()?.iter_mut().zip(x) {
            *y = by * x * x * x;
        }
        Ok(())
    }))
}

fn swish(node: &mut Decomposition) -> Result<()> {
    let (mul, sigmoid) = (node.op("mul")?, node.op("sigmoid")?);
    let (x, by) = (node.operand(0), node.attr::<f64>("by")? as f32);
    let by = node.add_constant(&[], &[by])?;
    let scaled = node.add(mul, &[x, by], &[])?;
    let gate = node.add(sigmoid, &[scaled], &[])?;
    let y = node.add(mul, &[x, gate], &[])?;
    node.give(0, y)
}

fn setup(context: &Setup) -> Result<()> {
    let flags = kiln::OP_ANY_THREAD;
    context.add_op(Op { schema: CUBE, uuid: Some(CUBE_UUID), flags, infer, decompose: None, open: Some(cube) })?;
    context.add_op(Op { schema: SWISH, uuid: Some(SWISH_UUID), flags: 0, infer, decompose: Some(swish), open: None })
}
