//! A backend of Kiln: it takes add, mul and relu of f32 arrays of known sizes, without broadcasting, makes steps of a
//! region, and runs them one after another. Change what is marked 1 to 5; `kiln/` has what it is written with.
mod kiln;
use kiln::{fail, Array, ArrayMut, Backend, BackendCall, Graph, Node, OpId, Result, Setup, Value};

// 1. The name of the plugin, and of the backend.
const NAME: &str = "template";
kiln::entry!(NAME, kiln::FEATURE_BACKENDS, setup);

struct Mine {
    ops: [OpId; 3], // add, mul, relu
}

// 3. What a region becomes: steps over slots, which are the region's inputs and parameters, then the steps' results.
struct Program {
    steps: Vec<[u32; 3]>, // number of the op, slots of two operands
    outputs: Vec<u32>,    // slots
}
const ADD: u32 = 0;
const MUL: u32 = 1;
const SHAPE: &str = "it takes add, mul and relu of f32 arrays of one known size";

/// How many elements a value has, if it is f32. Its sizes are known: there is no flag BACKEND_SYMBOLIC.
fn size_of(graph: &Graph, value: Value) -> Result<Option<i64>> {
    let size = graph.dims(value)?.iter().map(|dim| dim.value).product();
    Ok(if graph.dtype(value)? == kiln::F32 { Some(size) } else { None })
}
fn slot_of(slots: &[Value], value: Value) -> Result<u32> {
    let found = slots.iter().position(|slot| *slot == value);
    found.map_or_else(|| fail(kiln::INTERNAL, "a value comes before what makes it"), |slot| Ok(slot as u32))
}

impl Backend for Mine {
    type Program = Program;
    const NAME: &'static str = NAME;
    // 2. Its identity: 16 random bytes of your own (`kiln plugin uuid --lang rust`). Raise the version when what compile
    // makes changes.
    const VERSION: &'static str = "1";
    const UUID: Option<[u8; 16]> =
        Some([0x93, 0x2e, 0x60, 0xaf, 0x18, 0x75, 0x4b, 0xd9, 0x8c, 0x41, 0x0d, 0xb7, 0xe2, 0x5f, 0x36, 0xca]);

    /// 4. What it takes.
    fn takes(&self, call: &BackendCall, graph: &Graph, node: Node) -> Result<bool> {
        let size = size_of(graph, node.result(0))?;
        let mut fits = self.ops.contains(&graph.op_of(node)) && size.map_or(false, |size| size > 0);
        for x in graph.operands(node) {
            fits = fits && graph.kind(x.node()) != kiln::NODE_CONSTANT && size_of(graph, x)? == size;
        }
        if !fits {
            return call.refuse(SHAPE);
        }
        Ok(true)
    }

    /// 5. What it makes of a region: numbers of 32 bits.
    fn compile(&self, _: &BackendCall, region: &Graph) -> Result<Vec<u8>> {
        let mut slots = region.inputs()?;
        slots.extend(region.parameters()?);
        let mut steps = vec![];
        for node in region.nodes()? {
            if let Some(op) = self.ops.iter().position(|op| *op == region.op_of(node)) {
                let operands = region.operands(node); // of relu one, twice
                let (a, b) = (slot_of(&slots, operands[0])?, slot_of(&slots, operands[operands.len() - 1])?);
                steps.extend([op as u32, a, b]);
                slots.push(node.result(0));
            }
        }
        let mut words = vec![steps.len() as u32 / 3];
        words.extend(steps);
        for output in region.outputs()? {
            words.push(slot_of(&slots, output)?);
        }
        Ok(words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    /// The bytes may come from a file that somebody changed.
    fn load(&self, bytes: &[u8]) -> Result<Program> {
        let words: Vec<u32> = bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        match words.split_first() {
            Some((count, rest)) if rest.len() / 3 >= *count as usize => {
                let (steps, outputs) = rest.split_at(*count as usize * 3);
                let steps = steps.chunks_exact(3).map(|step| [step[0], step[1], step[2]]).collect();
                Ok(Program { steps, outputs: outputs.to_vec() })
            }
            _ => fail(kiln::CORRUPT, "the bytes are no program"),
        }
    }

    fn run(&self, program: &Program, arrays: &[Array], results: &mut [ArrayMut]) -> Result<()> {
        let mut slots = vec![];
        for array in arrays {
            slots.push(array.read::<f32>()?.to_vec());
        }
        for [op, a, b] in &program.steps {
            let (a, b) = match (slots.get(*a as usize), slots.get(*b as usize)) {
                (Some(a), Some(b)) => (a, b),
                _ => return fail(kiln::CORRUPT, "the program is of another region"),
            };
            let made = a.iter().zip(b).map(|(a, b)| match *op {
                ADD => a + b,
                MUL => a * b,
                _ if *a < 0.0 => 0.0,
                _ => *a,
            });
            slots.push(made.collect());
        }
        for (result, slot) in results.iter_mut().zip(&program.outputs) {
            let result = result.write::<f32>()?;
            match slots.get(*slot as usize) {
                Some(made) if made.len() == result.len() => result.copy_from_slice(made),
                _ => return fail(kiln::CORRUPT, "the program is of another region"),
            }
        }
        Ok(())
    }
}

fn setup(context: &Setup) -> Result<()> {
    let ops = [context.op("add")?, context.op("mul")?, context.op("relu")?];
    context.add_backend(Mine { ops })
}
