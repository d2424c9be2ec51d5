//! The C interface: numbers and tables of kiln/types.h, plugin.h, backend.h and dlpack.h, as C lays them out.
use std::ffi::c_void;
use std::mem;

// ---- Numbers: KILN_NAME of kiln/types.h, plugin.h and backend.h

macro_rules! numbers {
    ($($type:ty: $($name:ident = $value:literal)*;)*) => { $($(pub const $name: $type = $value;)*)* };
}
numbers! {
    u32: ABI_MAJOR = 1;
    u64: PLUGIN_MAGIC = 0x316e676c706e6c6b FEATURE_OPS = 1 FEATURE_BACKENDS = 2 FEATURE_PATTERNS = 8;
    // of errors
    u32: INVALID_ARGUMENT = 1 TYPE_MISMATCH = 2 UNKNOWN_NAME = 3 UNIMPLEMENTED = 4 CANCELLED = 7 OUT_OF_MEMORY = 8
         PLUGIN_FAILED = 10 IO = 11 CORRUPT = 12 OUT_OF_RANGE = 15 INTERNAL = 16 EXCEPTION = 17;
    // element types
    u32: F64 = 1 F32 = 2 F16 = 3 BF16 = 4 I64 = 5 I32 = 6 I16 = 7 I8 = 8 U8 = 9 BOOL = 10 U16 = 11 U32 = 12 U64 = 13
         F8_E4M3FN = 14 F8_E5M2 = 15 TOKEN = 16;
    // kinds of nodes, sides of a signature
    u32: NODE_INPUT = 1 NODE_PARAMETER = 2 NODE_CONSTANT = 3 NODE_OP = 4
         SIDE_INPUTS = 1 SIDE_PARAMETERS = 2 SIDE_OUTPUTS = 3;
    u32: STAGE_PRE_GRAD = 1 STAGE_POST_GRAD = 3 STAGE_LOWER = 4 TIMING_LATE = 1 TIMING_EARLY = 2;
    // flags
    u32: PASS_UUID_SUFFICES = 1 PASS_NUMERICS = 4 PASS_TOP_ONLY = 8
         OP_RANDOM = 1 OP_EFFECT = 2 OP_ANY_THREAD = 8 OP_UUID_SUFFICES = 16
         BACKEND_UUID_SUFFICES = 1 BACKEND_ANY_THREAD = 2 BACKEND_SYMBOLIC = 4;
    u32: ATTR_NONE = 0 ATTR_I64 = 1 ATTR_F64 = 2 ATTR_TEXT = 3 ATTR_DTYPE = 4 ATTR_DIM = 5 ATTR_BOOL = 8
         ATTR_LIST = 0x80000000;
}

// ---- Tables, as C lays them out. `Raw` before a name and `Host` before a table's are kiln_ and kiln_host_ of C.

/// A pointer to what only the host knows (a context, a graph, an error), or to what only the plugin knows.
pub type Handle = *mut c_void;
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Node(pub u64);
/// A result of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Value(pub u64);
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct OpId(pub u32);
macro_rules! structs {
    ($($(#[$note:meta])* $name:ident { $($field:ident: $type:ty,)* })*) => { $(
        $(#[$note])*
        #[derive(Clone, Copy)]
        #[repr(C)]
        pub struct $name { $(pub $field: $type,)* }
    )* };
}
structs! {
    /// A size: the integer `value`, or an expression over symbols if `expr` is not 0. Within a context two are the same
    /// in every run if they are equal here.
    #[derive(PartialEq, Eq, Hash, Debug)]
    Dim { value: i64, expr: u64, }
    Text { data: *const u8, size: u64, }
    RawAttr { name: *const u8, name_size: u64, kind: u32, reserved0: u32, count: u64, data: *const c_void, }
    RawType { struct_size: u32, dtype: u32, rank: u32, layout: u32, dims: *const Dim, strides: *const Dim, }
    DLTensor {
        data: *mut c_void, device_type: i32, device_id: i32, ndim: i32, code: u8, bits: u8, lanes: u16,
        shape: *const i64, strides: *const i64, byte_offset: u64,
    }
    RawPattern {
        struct_size: u32, reserved0: u32, json: *const u8, json_size: u64,
        rewrite: Option<extern "C" fn(Handle, Handle) -> Handle>,
    }
    RawPass {
        struct_size: u32, stage: u32, priority: i32, timing: u32, flags: u32, reserved0: u32,
        name: *const u8, name_size: u64, version: *const u8, version_size: u64, uuid: *const u8,
        options: *const RawAttr, option_count: u64, user: Handle,
        run: Option<extern "C" fn(Handle, Handle) -> Handle>,
        fingerprint: Option<extern "C" fn(Handle, Handle) -> Handle>,
        destroy: Option<extern "C" fn(Handle)>,
        label: *const u8, label_size: u64, patterns: *const *const RawPattern, pattern_count: u64,
    }
    RawOpDef {
        struct_size: u32, flags: u32, schema: *const u8, schema_size: u64, uuid: *const u8, user: Handle,
        infer: Option<extern "C" fn(Handle, Handle) -> Handle>,
        decompose: Option<extern "C" fn(Handle, Handle) -> Handle>,
        open: Option<extern "C" fn(Handle, Handle, *mut Handle) -> Handle>,
        run: Option<extern "C" fn(Handle, Handle, Arrays, u64, Handle) -> Handle>,
        close: Option<extern "C" fn(Handle, Handle)>,
        destroy: Option<extern "C" fn(Handle)>,
    }
    RawBackend {
        struct_size: u32, flags: u32, name: *const u8, name_size: u64, version: *const u8, version_size: u64,
        uuid: *const u8, options: *const RawAttr, option_count: u64, device_type: i32, reserved0: u32, user: Handle,
        target: Option<extern "C" fn(Handle, Handle) -> Handle>,
        takes: Option<extern "C" fn(Handle, Handle, Handle, Node, *mut u32) -> Handle>,
        compile: Option<extern "C" fn(Handle, Handle, Handle) -> Handle>,
        load: Option<extern "C" fn(Handle, *const u8, u64, *mut Handle) -> Handle>,
        prepare: Option<extern "C" fn(Handle, Handle, Arrays, u64, *mut Handle) -> Handle>,
        open: Option<extern "C" fn(Handle, Handle, *mut Handle) -> Handle>,
        run: Option<extern "C" fn(Handle, Handle, Handle, Handle, Arrays, u64, Handle) -> Handle>,
        close: Option<extern "C" fn(Handle, Handle)>,
        release: Option<extern "C" fn(Handle, Handle)>,
        unload: Option<extern "C" fn(Handle, Handle)>,
        destroy: Option<extern "C" fn(Handle)>,
    }
    RawHost {
        struct_size: u32, abi_minor: u32, features: u64, error: *const HostError, op: *const HostOp,
        dim: *const HostDim, graph: *const HostGraph, node: *const HostNode, value: *const HostValue,
        edit: *const HostEdit, pass: *const HostPass, context: *const HostContext, op_call: *const HostOpCall,
        backend: *const HostBackend,
    }
    RawPlugin {
        struct_size: u32, abi_major: u32, magic: u64, host_minor_needed: u32, reserved0: u32, features_needed: u64,
        features_used: u64, name: *const u8, name_size: u64,
        setup: Option<extern "C" fn(*const RawHost, Handle, *mut Handle) -> Handle>,
        teardown: Option<extern "C" fn(Handle)>,
    }
    RawPluginNote {
        owner_size: u32, payload_size: u32, r#type: u32, owner: [u8; 8], magic_low: u32, magic_high: u32,
        abi_major: u32, host_minor_needed: u32, features_low: u32, features_high: u32, name: [u8; 64],
    }
}
pub type Arrays = *const *const DLTensor;

macro_rules! tables {
    ($($table:ident { $($slot:ident($($argument:ty),*) $(-> $result:ty)?;)* })*) => { $(
        #[repr(C)]
        pub struct $table {
            pub struct_size: u32,
            pub reserved0: u32,
            $(pub $slot: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }
    )* };
}
tables! {
    HostError {
        create(u32, *const u8, u64, Handle) -> Handle;
        code(Handle) -> u32;
        message(Handle, *mut Text);
        plugin(Handle, *mut Text);
        cause(Handle) -> Handle;
        destroy(Handle);
    }
    HostOp {
        find(Handle, *const u8, u64, *mut OpId) -> Handle;
        name(Handle, OpId, *mut Text) -> Handle;
    }
    HostDim {
        parse(Handle, *const u8, u64, *mut Dim) -> Handle;
        text(Handle, *const Dim, *mut Text) -> Handle;
        evaluate(Handle, *const Dim, *const Text, *const i64, u64, *mut i64) -> Handle;
    }
    HostGraph {
        nodes(Handle, *mut Node, u64, *mut u64) -> Handle;
        signature(Handle, u32, *mut Value, u64, *mut u64) -> Handle;
        output_name(Handle, u64, *mut Text) -> Handle;
        find(Handle, *const u8, u64, *mut Node) -> Handle;
        destroy(Handle);
    }
    HostNode {
        kind(Handle, Node) -> u32;
        name(Handle, Node, *mut Text) -> Handle;
        op(Handle, Node) -> OpId;
        input_count(Handle, Node) -> u32;
        input(Handle, Node, u32) -> Value;
        output_count(Handle, Node) -> u32;
        attr(Handle, Node, *const u8, u64, *mut RawAttr) -> Handle;
        attrs(Handle, Node, *mut RawAttr, u64, *mut u64) -> Handle;
        annotations(Handle, Node, *mut RawAttr, u64, *mut u64) -> Handle;
        constant(Handle, Node, *mut *const DLTensor) -> Handle;
    }
    HostValue {
        use_count(Handle, Value) -> u32;
        users(Handle, Value, *mut Node, u64, *mut u64) -> Handle;
        dtype(Handle, Value, *mut u32) -> Handle;
        dims(Handle, Value, *mut Dim, u64, *mut u64) -> Handle;
        strides(Handle, Value, *mut Dim, u64, *mut u64) -> Handle;
        view_of(Handle, Value) -> Value;
    }
    HostEdit {
        begin(Handle, Handle, *mut Handle) -> Handle;
        view(Handle) -> Handle;
        symbol(Handle, *const u8, u64, Handle) -> Handle;
        input(Handle, *const u8, u64, *const RawType, *mut Value) -> Handle;
        parameter(Handle, *const u8, u64, *const RawType, *mut Value) -> Handle;
        constant(Handle, *const u8, u64, *const DLTensor, *mut Value) -> Handle;
        add(Handle, OpId, *const u8, u64, *const Value, u64, *const RawAttr, u64, *mut Node) -> Handle;
        annotate(Handle, Node, *const RawAttr, u64) -> Handle;
        scope(Handle, *const RawAttr, u64) -> Handle;
        replace(Handle, Value, Value) -> Handle;
        outputs(Handle, *const Value, *const Text, u64) -> Handle;
        finish(Handle, *mut Handle) -> Handle;
        destroy(Handle);
        output(Handle, Handle) -> Handle;
    }
    HostPass {
        edit(Handle) -> Handle;
        context(Handle) -> Handle;
        option(Handle, *const u8, u64, *mut RawAttr) -> Handle;
        fingerprint_add(Handle, *const u8, u64) -> Handle;
        replace_graph(Handle, Handle) -> Handle;
        done(Handle, u64) -> Handle;
        note(Handle, *const u8, u64) -> Handle;
        warn(Handle, *const u8, u64) -> Handle;
        query(Handle, *const u8, u64, *mut RawAttr) -> Handle;
        uncacheable(Handle, *const u8, u64) -> Handle;
        apply_patterns(Handle, *mut u64) -> Handle;
        match_value(Handle, *const u8, u64, *mut Value) -> Handle;
        match_number(Handle, *const u8, u64, *mut f64) -> Handle;
        match_replace(Handle, *const Value, u64) -> Handle;
    }
    HostContext {
        add_pass(Handle, *const RawPass) -> Handle;
        add_op(Handle, *const RawOpDef) -> Handle;
        add_file(Handle, *const u8, u64) -> Handle;
        add_function(Handle, Handle) -> Handle;
        add_backend(Handle, *const RawBackend) -> Handle;
    }
    HostOpCall {
        context(Handle) -> Handle;
        operand_count(Handle) -> u32;
        dtype(Handle, u32, *mut u32) -> Handle;
        dims(Handle, u32, *mut Dim, u64, *mut u64) -> Handle;
        attr(Handle, *const u8, u64, *mut RawAttr) -> Handle;
        result(Handle, u32, *const RawType) -> Handle;
        require_equal(Handle, *const Dim, *const Dim, *const u8, u64) -> Handle;
        edit(Handle) -> Handle;
        operand(Handle, u32) -> Value;
        r#yield(Handle, u32, Value) -> Handle;
    }
    HostBackend {
        context(Handle) -> Handle;
        option(Handle, *const u8, u64, *mut RawAttr) -> Handle;
        key(Handle, *const u8, u64) -> Handle;
        blob(Handle, *const u8, u64) -> Handle;
        refuse(Handle, *const u8, u64) -> Handle;
    }
}

unsafe impl Sync for RawPlugin {} // it does not change

pub const fn note(name: &str, features: u64) -> RawPluginNote {
    assert!(!name.is_empty() && name.len() < 64, "a plugin's name has 1 to 63 bytes");
    let (mut bytes, mut i) = ([0; 64], 0);
    while i < name.len() {
        bytes[i] = name.as_bytes()[i];
        i += 1;
    }
    RawPluginNote {
        owner_size: 5,
        payload_size: 88,
        r#type: 1,
        owner: *b"Kiln\0\0\0\0",
        magic_low: PLUGIN_MAGIC as u32,
        magic_high: (PLUGIN_MAGIC >> 32) as u32,
        abi_major: ABI_MAJOR,
        host_minor_needed: 0,
        features_low: features as u32,
        features_high: (features >> 32) as u32,
        name: bytes,
    }
}
type SetupFn = extern "C" fn(*const RawHost, Handle, *mut Handle) -> Handle;
pub const fn table(name: &'static str, features: u64, setup: SetupFn) -> RawPlugin {
    RawPlugin {
        struct_size: mem::size_of::<RawPlugin>() as u32,
        abi_major: ABI_MAJOR,
        magic: PLUGIN_MAGIC,
        host_minor_needed: 0,
        reserved0: 0,
        features_needed: features,
        features_used: 0,
        name: name.as_ptr(),
        name_size: name.len() as u64,
        setup: Some(setup),
        teardown: None,
    }
}
