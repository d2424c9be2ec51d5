//! A pass of Kiln that says what it looks for, and what takes its place: x * sigmoid(x) becomes silu(x). Change what is
//! marked 1 to 3; `kiln/` has what it is written with.
mod kiln;
use kiln::{Pass, Pattern, Result, Setup};

// 1. The name: of the plugin, of the pass.
const NAME: &str = "fuse_silu";
kiln::entry!(NAME, kiln::FEATURE_PATTERNS, setup);

// 2. Its identity: 16 random bytes of your own (`kiln plugin uuid --lang rust`). With it, what the pass makes is cached;
// raise VERSION when that changes.
const UUID: [u8; 16] = [0x91, 0x3c, 0x5e, 0x07, 0xd2, 0x88, 0x4b, 0x1a, 0xa6, 0x70, 0x2f, 0xc9, 0x15, 0x64, 0xeb, 0x3d];
const VERSION: &str = "1";

/// 3. The pattern: docs/patterns.md says what each member is. With `Pattern::calling` a function takes the replacement's
/// place.
const SILU: &str = r#"{"kiln": 1, "pattern": "silu",
    "captures": [{"name": "x"}],
    "nodes": [{"name": "s", "op": "sigmoid", "inputs": ["x"]},
              {"name": "y", "op": "mul", "inputs": ["x", "s"]}],
    "outputs": ["y"],
    "replacement": {"nodes": [{"name": "fused", "op": "silu", "inputs": ["x"]}], "outputs": ["fused"]}}"#;

/// Once per context.
fn setup(context: &Setup) -> Result<()> {
    context.add_pass(Pass::of_patterns(NAME, VERSION, UUID, vec![Pattern::new(SILU)]))
}
