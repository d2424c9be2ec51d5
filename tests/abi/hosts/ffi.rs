//! The C interface as Rust sees it: the part of kiln.h that the host uses, by hand.

use std::ffi::c_void;

// ---- structs and numbers: kiln/types.h, kiln/dlpack.h

pub const INVALID_ARGUMENT: u32 = 1;
pub const NOT_CACHED: u32 = 6;
pub const CANCELLED: u32 = 7;
pub const PLUGIN_FAILED: u32 = 10;
pub const EXCEPTION: u32 = 17; // of Rust: a panic
pub const STAGE_POST_GRAD: u32 = 3;
pub const PASS_UUID_SUFFICES: u32 = 1;
pub const FUNCTION_UUID_SUFFICES: u32 = 1;
pub const OP_UUID_SUFFICES: u32 = 16;

pub type Raw = *mut c_void; // any handle
pub type Destroy = extern "C" fn(Raw);

#[repr(C)]
pub struct Text {
    pub data: *const u8,
    pub size: u64,
}

#[repr(C)]
pub struct DLTensor {
    pub data: *mut c_void,
    pub device: [i32; 2], // CPU is 1, and which one
    pub ndim: i32,
    pub code: u8, // a float is 2
    pub bits: u8,
    pub lanes: u16,
    pub shape: *const i64,
    pub strides: *const i64,
    pub byte_offset: u64,
}

#[repr(C)]
pub struct PassRequest {
    pub struct_size: u32,
    pub stage: u32,
    pub priority: i32,
    pub timing: u32,
    pub flags: u32,
    pub reserved0: u32,
    pub name: *const u8,
    pub name_size: u64,
    pub version: *const u8,
    pub version_size: u64,
    pub uuid: *const u8,
    pub options: *const c_void,
    pub option_count: u64,
    pub user: Raw,
    pub run: extern "C" fn(Raw, Raw) -> Raw,
    pub fingerprint: Option<extern "C" fn(Raw, Raw) -> Raw>,
    pub destroy: Destroy,
}

#[repr(C)]
pub struct EventSink {
    pub struct_size: u32,
    pub kinds: u32,
    pub user: Raw,
    pub event: extern "C" fn(Raw, u32, *const u8, u64) -> i32,
    pub destroy: Destroy,
}

#[repr(C)]
pub struct FunctionRequest {
    pub struct_size: u32,
    pub flags: u32,
    pub name: *const u8,
    pub name_size: u64,
    pub version: *const u8,
    pub version_size: u64,
    pub signature: *const u8,
    pub signature_size: u64,
    pub uuid: *const u8,
    pub pointer: *const c_void, // of any signature
    pub library: *const u8,
    pub library_size: u64,
    pub symbol: *const u8,
    pub symbol_size: u64,
    pub user: Raw,
    pub destroy: Destroy,
}

#[repr(C)]
pub struct OpRequest {
    pub struct_size: u32,
    pub flags: u32,
    pub schema: *const u8,
    pub schema_size: u64,
    pub uuid: *const u8,
    pub user: Raw,
    pub infer: extern "C" fn(Raw, Raw) -> Raw,
    pub decompose: Option<extern "C" fn(Raw, Raw) -> Raw>,
    pub open: Option<extern "C" fn(Raw, Raw, *mut Raw) -> Raw>,
    pub run: extern "C" fn(Raw, Raw, *const *const DLTensor, u64, *const c_void) -> Raw,
    pub close: Option<extern "C" fn(Raw, Raw)>,
    pub destroy: Destroy,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dim {
    pub value: i64,
    pub expr: u64, // 0: the dimension is `value`
}

#[repr(C)]
pub struct Type {
    pub struct_size: u32,
    pub dtype: u32,
    pub rank: u32,
    pub layout: u32,
    pub dims: *const Dim,
    pub strides: *const Dim,
}

// ---- functions: kiln/kiln.h, kiln/graph.h, kiln/function.h. A string is passed as a pointer and its size.

#[link(name = "kiln")]
extern "C" {
    pub fn kiln_version() -> u32;
    pub fn kiln_error_create(code: u32, message: *const u8, size: u64, cause: Raw) -> Raw;
    pub fn kiln_error_code(error: Raw) -> u32;
    pub fn kiln_error_message(error: Raw, out: *mut Text);
    pub fn kiln_error_plugin(error: Raw, out: *mut Text);
    pub fn kiln_error_report(error: Raw) -> Raw;
    pub fn kiln_error_destroy(error: Raw);
    pub fn kiln_options_create(out: *mut Raw) -> Raw;
    pub fn kiln_options_set_bool(options: Raw, name: *const u8, size: u64, value: u32) -> Raw;
    pub fn kiln_options_set_text(options: Raw, name: *const u8, size: u64, value: *const u8, value_size: u64) -> Raw;
    pub fn kiln_options_destroy(options: Raw);
    pub fn kiln_context_create(options: Raw, sink: *const EventSink, out: *mut Raw) -> Raw;
    pub fn kiln_context_close(context: Raw) -> Raw;
    pub fn kiln_context_report(context: Raw, out: *mut Raw) -> Raw;
    pub fn kiln_context_destroy(context: Raw);
    pub fn kiln_plugin_load(context: Raw, path: *const u8, size: u64, options: Raw) -> Raw;
    pub fn kiln_pass_register(context: Raw, pass: *const PassRequest, options: Raw, out: *mut u64) -> Raw;
    pub fn kiln_pass_unregister(context: Raw, id: u64) -> Raw;
    pub fn kiln_function_register(context: Raw, function: *const FunctionRequest, out: *mut u64) -> Raw;
    pub fn kiln_op_register(context: Raw, op: *const OpRequest, out: *mut u32) -> Raw;
    pub fn kiln_op_call_dtype(call: Raw, operand: u32, out: *mut u32) -> Raw;
    pub fn kiln_op_call_dims(call: Raw, operand: u32, buffer: *mut Dim, capacity: u64, out: *mut u64) -> Raw;
    pub fn kiln_op_call_result(call: Raw, index: u32, told: *const Type) -> Raw;
    pub fn kiln_pass_edit(call: Raw) -> Raw;
    pub fn kiln_pass_context(call: Raw) -> Raw;
    pub fn kiln_pass_done(call: Raw, rewrites: u64) -> Raw;
    pub fn kiln_edit_view(edit: Raw) -> Raw;
    pub fn kiln_edit_constant(edit: Raw, name: *const u8, size: u64, tensor: *const DLTensor, out: *mut u64) -> Raw;
    pub fn kiln_edit_add(
        edit: Raw,
        op: u32,
        name: *const u8,
        size: u64,
        inputs: *const u64,
        input_count: u64,
        attrs: *const c_void,
        attr_count: u64,
        out: *mut u64,
    ) -> Raw;
    pub fn kiln_edit_replace(edit: Raw, from: u64, to: u64) -> Raw;
    pub fn kiln_op_find(context: Raw, name: *const u8, size: u64, out: *mut u32) -> Raw;
    pub fn kiln_graph_parse(context: Raw, json: *const u8, size: u64, out: *mut Raw) -> Raw;
    pub fn kiln_graph_write(graph: Raw, format: *const u8, size: u64, out: *mut Raw) -> Raw;
    pub fn kiln_graph_describe(graph: Raw, out: *mut Raw) -> Raw;
    pub fn kiln_graph_nodes(graph: Raw, buffer: *mut u64, capacity: u64, out: *mut u64) -> Raw;
    pub fn kiln_graph_destroy(graph: Raw);
    pub fn kiln_node_op(graph: Raw, node: u64) -> u32;
    pub fn kiln_node_input(graph: Raw, node: u64, index: u32) -> u64;
    pub fn kiln_compile(context: Raw, graph: Raw, options: Raw, out: *mut Raw, report: *mut Raw) -> Raw;
    pub fn kiln_executable_save(executable: Raw, path: *const u8, size: u64, options: Raw) -> Raw;
    pub fn kiln_executable_open(context: Raw, path: *const u8, size: u64, options: Raw, out: *mut Raw) -> Raw;
    pub fn kiln_executable_text(executable: Raw, what: *const u8, size: u64, out: *mut Raw) -> Raw;
    pub fn kiln_executable_destroy(executable: Raw);
    pub fn kiln_call_create(executable: Raw, out: *mut Raw) -> Raw;
    pub fn kiln_call_slot(call: Raw, name: *const u8, size: u64, out: *mut u32) -> Raw;
    pub fn kiln_call_bind(call: Raw, slot: u32, tensor: *const DLTensor) -> Raw;
    pub fn kiln_call_run(call: Raw, args: *const *const DLTensor, count: u64, options: *const c_void) -> Raw;
    pub fn kiln_call_destroy(call: Raw);
    pub fn kiln_report_get_i64(report: Raw, path: *const u8, size: u64, out: *mut i64) -> Raw;
    pub fn kiln_report_get_text(report: Raw, path: *const u8, size: u64, out: *mut Text) -> Raw;
    pub fn kiln_report_count(report: Raw, path: *const u8, size: u64, out: *mut u64) -> Raw;
    pub fn kiln_report_destroy(report: Raw);
    pub fn kiln_blob_data(blob: Raw, size: *mut u64) -> *const u8;
    pub fn kiln_blob_destroy(blob: Raw);
}
