//! A thin binding of Kiln, std only: errors are `Result`s, handles drop themselves, passes are closures.

use crate::ffi::*;
use std::any::Any;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::{fmt, mem, ptr, slice, str};

/// Of the library that runs.
pub fn abi_major() -> u32 {
    unsafe { kiln_version() >> 16 }
}

// ---- errors

/// A kiln_error. `reason` is the lookup's, when the error has a compile's report.
#[derive(Debug)]
pub struct Error {
    pub code: u32,
    pub message: String,
    pub plugin: String,
    pub reason: String,
}
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{} (code {})", self.message, self.code)
    }
}
impl std::error::Error for Error {}

/// The text that `write` puts into its argument, copied.
fn text(write: impl FnOnce(*mut Text)) -> String {
    let mut view = Text { data: ptr::null(), size: 0 };
    write(&mut view);
    if view.size == 0 {
        return String::new();
    }
    let bytes = unsafe { slice::from_raw_parts(view.data, view.size as usize) };
    String::from_utf8_lossy(bytes).into_owned()
}

fn report_text(report: Raw, path: &str) -> Result<String> {
    let mut outcome = Ok(());
    let read = |out| outcome = check(unsafe { kiln_report_get_text(report, path.as_ptr(), path.len() as u64, out) });
    let found = text(read);
    outcome.map(|_| found)
}

/// Takes the error over, if there is one.
fn check(error: Raw) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    unsafe {
        let report = kiln_error_report(error); // a view: the error's
        let taken = Error {
            code: kiln_error_code(error),
            message: text(|out| kiln_error_message(error, out)),
            plugin: text(|out| kiln_error_plugin(error, out)),
            reason: if report.is_null() { String::new() } else { report_text(report, "reason").unwrap_or_default() },
        };
        kiln_error_destroy(error);
        Err(taken)
    }
}

/// What a fallible function writes to its last argument.
fn out<T: Copy>(empty: T, call: impl FnOnce(*mut T) -> Raw) -> Result<T> {
    let mut value = empty;
    check(call(&mut value))?;
    Ok(value)
}
fn handle(call: impl FnOnce(*mut Raw) -> Raw) -> Result<Raw> {
    out(ptr::null_mut(), call)
}

// ---- handles

macro_rules! handles {
    ($($name:ident $destroy:ident)*) => { $(
        pub struct $name(Raw);
        impl Drop for $name {
            fn drop(&mut self) {
                unsafe { $destroy(self.0) }
            }
        }
    )* };
}
handles! {
    Options kiln_options_destroy
    Context kiln_context_destroy
    Graph kiln_graph_destroy
    Executable kiln_executable_destroy
    Report kiln_report_destroy
    Blob kiln_blob_destroy
}

impl Options {
    pub fn new() -> Result<Self> {
        handle(|out| unsafe { kiln_options_create(out) }).map(Options)
    }
    pub fn flag(self, name: &str, value: bool) -> Result<Self> {
        check(unsafe { kiln_options_set_bool(self.0, name.as_ptr(), name.len() as u64, value as u32) })?;
        Ok(self)
    }
    pub fn text(self, name: &str, value: &str) -> Result<Self> {
        let (size, value_size) = (name.len() as u64, value.len() as u64);
        check(unsafe { kiln_options_set_text(self.0, name.as_ptr(), size, value.as_ptr(), value_size) })?;
        Ok(self)
    }
}

impl Report {
    pub fn i64(&self, path: &str) -> Result<i64> {
        out(0, |out| unsafe { kiln_report_get_i64(self.0, path.as_ptr(), path.len() as u64, out) })
    }
    pub fn count(&self, path: &str) -> Result<u64> {
        out(0, |out| unsafe { kiln_report_count(self.0, path.as_ptr(), path.len() as u64, out) })
    }
    pub fn text(&self, path: &str) -> Result<String> {
        report_text(self.0, path)
    }
}

impl Blob {
    fn text(&self) -> String {
        text(|out| unsafe { (*out).data = kiln_blob_data(self.0, &mut (*out).size) })
    }
}

impl Graph {
    pub fn text(&self, format: &str) -> Result<String> {
        let raw = handle(|out| unsafe { kiln_graph_write(self.0, format.as_ptr(), format.len() as u64, out) })?;
        Ok(Blob(raw).text())
    }
    pub fn describe(&self) -> Result<Report> {
        handle(|out| unsafe { kiln_graph_describe(self.0, out) }).map(Report)
    }
}

impl Executable {
    pub fn text(&self, what: &str) -> Result<String> {
        let raw = handle(|out| unsafe { kiln_executable_text(self.0, what.as_ptr(), what.len() as u64, out) })?;
        Ok(Blob(raw).text())
    }
    pub fn save(&self, path: &str) -> Result<()> {
        check(unsafe { kiln_executable_save(self.0, path.as_ptr(), path.len() as u64, ptr::null_mut()) })
    }
}

impl Context {
    pub fn new(options: &Options) -> Result<Self> {
        handle(|out| unsafe { kiln_context_create(options.0, ptr::null(), out) }).map(Context)
    }
    /// `listener` gets the events' texts and returns whether to cancel.
    pub fn listening(options: &Options, listener: Listener) -> Result<Self> {
        let struct_size = mem::size_of::<EventSink>() as u32;
        lend(listener, |user| {
            let sink = EventSink { struct_size, kinds: 0, user, event: send_event, destroy: let_go::<Listener> };
            handle(|out| unsafe { kiln_context_create(options.0, &sink, out) }).map(Context)
        })
    }
    pub fn close(&self) -> Result<()> {
        check(unsafe { kiln_context_close(self.0) })
    }
    pub fn report(&self) -> Result<Report> {
        handle(|out| unsafe { kiln_context_report(self.0, out) }).map(Report)
    }
    pub fn load_plugin(&self, path: &str) -> Result<()> {
        check(unsafe { kiln_plugin_load(self.0, path.as_ptr(), path.len() as u64, ptr::null_mut()) })
    }
    pub fn parse(&self, json: &str) -> Result<Graph> {
        handle(|out| unsafe { kiln_graph_parse(self.0, json.as_ptr(), json.len() as u64, out) }).map(Graph)
    }
    pub fn compile(&self, graph: &Graph, options: &Options) -> Result<(Executable, Report)> {
        let mut report = ptr::null_mut();
        let executable = handle(|out| unsafe { kiln_compile(self.0, graph.0, options.0, out, &mut report) })?;
        Ok((Executable(executable), Report(report)))
    }
    pub fn load(&self, path: &str) -> Result<Executable> {
        handle(|out| unsafe { kiln_executable_open(self.0, path.as_ptr(), path.len() as u64, ptr::null_mut(), out) }).map(Executable)
    }
    /// Registers a pass that runs `rewrite`; the result serves to unregister it.
    pub fn register(&self, name: &str, uuid: Option<&[u8; 16]>, rewrite: Rewrite) -> Result<u64> {
        lend(rewrite, |user| {
            let request = PassRequest {
                struct_size: mem::size_of::<PassRequest>() as u32,
                stage: STAGE_POST_GRAD,
                priority: 0,
                timing: 0,
                flags: if uuid.is_some() { PASS_UUID_SUFFICES } else { 0 },
                reserved0: 0,
                name: name.as_ptr(),
                name_size: name.len() as u64,
                version: ptr::null(),
                version_size: 0,
                uuid: uuid.map_or(ptr::null(), |bytes| bytes.as_ptr()),
                options: ptr::null(),
                option_count: 0,
                user,
                run: run_pass,
                fingerprint: None,
                destroy: let_go::<Rewrite>,
            };
            out(0, |out| unsafe { kiln_pass_register(self.0, &request, ptr::null_mut(), out) })
        })
    }
    /// Registers a function that makes each element of a result of those of an operand; the result serves to
    /// unregister it. Both are `shape`s in a signature: "0[n]".
    pub fn register_function(&self, name: &str, arrays: [&str; 2], uuid: Option<&[u8; 16]>, map: Map) -> Result<u64> {
        let signature = format!("error (f32 data {}, f32 data {}, i64 n, user)", arrays[0], arrays[1]);
        lend(map, |user| {
            let request = FunctionRequest {
                struct_size: mem::size_of::<FunctionRequest>() as u32,
                flags: if uuid.is_some() { FUNCTION_UUID_SUFFICES } else { 0 },
                name: name.as_ptr(),
                name_size: name.len() as u64,
                version: ptr::null(),
                version_size: 0,
                signature: signature.as_ptr(),
                signature_size: signature.len() as u64,
                uuid: uuid.map_or(ptr::null(), |bytes| bytes.as_ptr()),
                pointer: run_map as *const _,
                library: ptr::null(),
                library_size: 0,
                symbol: ptr::null(),
                symbol_size: 0,
                user,
                destroy: let_go::<Map>,
            };
            out(0, |out| unsafe { kiln_function_register(self.0, &request, out) })
        })
    }
    /// Registers an op; the result is its number, which is the context's for good.
    pub fn register_op(&self, schema: &str, uuid: Option<&[u8; 16]>, op: Op) -> Result<u32> {
        lend(op, |user| {
            let request = OpRequest {
                struct_size: mem::size_of::<OpRequest>() as u32,
                flags: if uuid.is_some() { OP_UUID_SUFFICES } else { 0 },
                schema: schema.as_ptr(),
                schema_size: schema.len() as u64,
                uuid: uuid.map_or(ptr::null(), |bytes| bytes.as_ptr()),
                user,
                infer: infer_op,
                decompose: None,
                open: None,
                run: run_op,
                close: None,
                destroy: let_go::<Op>,
            };
            out(0, |out| unsafe { kiln_op_register(self.0, &request, out) })
        })
    }
    pub fn unregister(&self, id: u64) -> Result<()> {
        check(unsafe { kiln_pass_unregister(self.0, id) })
    }
}

/// What an array may hold: DLPack's code of it, and what a type is called in graphs.
pub trait Element: Copy {
    const CODE: u8;
    const NAME: &'static str;
}
macro_rules! elements {
    ($($type:ty, $code:literal, $name:literal;)*) => { $(
        impl Element for $type {
            const CODE: u8 = $code;
            const NAME: &'static str = $name;
        }
    )* };
}
/// Floats that Rust has no type for, by their bits.
macro_rules! bits {
    ($($name:ident($bits:ty))*) => { $(
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[repr(transparent)]
        pub struct $name(pub $bits);
    )* };
}
bits! { F16(u16) Bf16(u16) F8E4m3fn(u8) F8E5m2(u8) }
elements! {
    i64, 0, "i64"; i32, 0, "i32"; i16, 0, "i16"; i8, 0, "i8";
    u64, 1, "u64"; u32, 1, "u32"; u16, 1, "u16"; u8, 1, "u8";
    f64, 2, "f64"; f32, 2, "f32"; F16, 2, "f16"; Bf16, 4, "bf16"; bool, 6, "bool";
    F8E4m3fn, 10, "f8_e4m3fn"; F8E5m2, 12, "f8_e5m2";
}

/// A row-major array of Rust's own.
pub struct Array<T = f32> {
    pub values: Vec<T>,
    shape: Vec<i64>,
}

impl<T: Element> Array<T> {
    pub fn new(shape: &[i64], values: Vec<T>) -> Self {
        assert_eq!(shape.iter().product::<i64>(), values.len() as i64);
        Array { values, shape: shape.to_vec() }
    }
    fn tensor(&self, data: *mut T) -> DLTensor {
        DLTensor {
            data: data.cast(),
            device: [1, 0],
            ndim: self.shape.len() as i32,
            code: T::CODE,
            bits: 8 * mem::size_of::<T>() as u8,
            lanes: 1,
            shape: self.shape.as_ptr(),
            strides: ptr::null(),
            byte_offset: 0,
        }
    }
}

/// What a call reads, and what it writes to, whatever it holds.
pub trait Input {
    fn lent(&self) -> DLTensor;
}
pub trait Output {
    fn lent_to_write(&mut self) -> DLTensor;
}
impl<T: Element> Input for Array<T> {
    fn lent(&self) -> DLTensor {
        self.tensor(self.values.as_ptr() as *mut T) // Kiln only reads inputs and parameters
    }
}
impl<T: Element> Output for Array<T> {
    fn lent_to_write(&mut self) -> DLTensor {
        let data = self.values.as_mut_ptr();
        self.tensor(data)
    }
}

/// A call borrows what is bound to it.
pub struct Call<'bound>(Raw, PhantomData<&'bound ()>);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        unsafe { kiln_call_destroy(self.0) }
    }
}

impl<'bound> Call<'bound> {
    pub fn new(executable: &Executable) -> Result<Self> {
        handle(|out| unsafe { kiln_call_create(executable.0, out) }).map(|raw| Call(raw, PhantomData))
    }
    pub fn bind(&mut self, name: &str, array: &'bound dyn Input) -> Result<()> {
        let slot = out(0, |out| unsafe { kiln_call_slot(self.0, name.as_ptr(), name.len() as u64, out) })?;
        check(unsafe { kiln_call_bind(self.0, slot, &array.lent()) })
    }
    pub fn run(&mut self, inputs: &[&dyn Input], outputs: &mut [&mut dyn Output]) -> Result<()> {
        let mut tensors: Vec<DLTensor> = inputs.iter().map(|input| input.lent()).collect();
        tensors.extend(outputs.iter_mut().map(|output| output.lent_to_write()));
        let args: Vec<*const DLTensor> = tensors.iter().map(|tensor| tensor as *const DLTensor).collect();
        check(unsafe { kiln_call_run(self.0, args.as_ptr(), args.len() as u64, ptr::null()) })
    }
}

// ---- callbacks. `user` points to a boxed closure, which Kiln owns until it calls `let_go`. A context may compile on
// several threads, so closures are shared; none lets a panic cross into C.

pub type Rewrite = Box<dyn Fn(&Rewriter) -> Result<u64> + Send + Sync>;
pub type Map = Box<dyn Fn(&[f32], &mut [f32]) + Send + Sync>;
pub type Infer = Box<dyn Fn(&OpCall) -> Result<()> + Send + Sync>;
/// An op of f32 with one operand and one result.
pub struct Op {
    pub infer: Infer,
    pub map: Map,
}
pub type Listener = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Boxes `owner` for `take`; when Kiln refuses it, it is ours still.
fn lend<Owner, T>(owner: Owner, take: impl FnOnce(Raw) -> Result<T>) -> Result<T> {
    let user = Box::into_raw(Box::new(owner));
    let outcome = take(user.cast());
    if outcome.is_err() {
        drop(unsafe { Box::from_raw(user) });
    }
    outcome
}

extern "C" fn let_go<Owner>(user: Raw) {
    let _ = catch_unwind(|| drop(unsafe { Box::from_raw(user.cast::<Owner>()) }));
}

fn failed(code: u32, message: &str) -> Raw {
    unsafe { kiln_error_create(code, message.as_ptr(), message.len() as u64, ptr::null_mut()) }
}
fn panicked(panic: Box<dyn Any + Send>) -> Raw {
    let words = panic.downcast_ref::<&str>().copied();
    let said = words.or_else(|| panic.downcast_ref::<String>().map(|text| text.as_str()));
    failed(EXCEPTION, &format!("panicked: {}", said.unwrap_or("for no reason that it tells")))
}

extern "C" fn run_pass(user: Raw, call: Raw) -> Raw {
    let rewrite = unsafe { &*user.cast::<Rewrite>() };
    match catch_unwind(AssertUnwindSafe(|| rewrite(&Rewriter::new(call)))) {
        Ok(Ok(rewrites)) => unsafe { kiln_pass_done(call, rewrites) },
        Ok(Err(error)) => failed(error.code, &error.message),
        Err(panic) => panicked(panic),
    }
}

extern "C" fn run_map(from: *const f32, to: *mut f32, count: i64, user: Raw) -> Raw {
    let map = unsafe { &*user.cast::<Map>() };
    let (from, to) = unsafe { (slice::from_raw_parts(from, count as usize), slice::from_raw_parts_mut(to, count as usize)) };
    catch_unwind(AssertUnwindSafe(|| map(from, to))).map_or_else(panicked, |_| ptr::null_mut())
}

extern "C" fn infer_op(user: Raw, call: Raw) -> Raw {
    let op = unsafe { &*user.cast::<Op>() };
    match catch_unwind(AssertUnwindSafe(|| (op.infer)(&OpCall(call)))) {
        Ok(Ok(())) => ptr::null_mut(),
        Ok(Err(error)) => failed(error.code, &error.message),
        Err(panic) => panicked(panic),
    }
}

extern "C" fn run_op(user: Raw, _state: Raw, arrays: *const *const DLTensor, _count: u64, _options: *const c_void) -> Raw {
    let (op, x, y) = unsafe { (&*user.cast::<Op>(), &**arrays, &**arrays.add(1)) };
    let shape = unsafe { slice::from_raw_parts(x.shape, x.ndim as usize) };
    let count = shape.iter().product::<i64>() as usize;
    let from = unsafe { slice::from_raw_parts(x.data.cast::<f32>(), count) };
    let to = unsafe { slice::from_raw_parts_mut(y.data.cast::<f32>(), count) };
    catch_unwind(AssertUnwindSafe(|| (op.map)(from, to))).map_or_else(panicked, |_| ptr::null_mut())
}

extern "C" fn send_event(user: Raw, _kind: u32, text: *const u8, size: u64) -> i32 {
    let listener = unsafe { &*user.cast::<Listener>() };
    let words = unsafe { str::from_utf8_unchecked(slice::from_raw_parts(text, size as usize)) };
    catch_unwind(AssertUnwindSafe(|| listener(words))).unwrap_or(true) as i32 // a panic cancels
}

/// What infer knows of a node: types of operands. It tells those of results.
pub struct OpCall(Raw);

impl OpCall {
    pub fn dtype(&self, operand: u32) -> Result<u32> {
        out(0, |out| unsafe { kiln_op_call_dtype(self.0, operand, out) })
    }
    pub fn dims(&self, operand: u32) -> Result<Vec<Dim>> {
        let rank = out(0, |out| unsafe { kiln_op_call_dims(self.0, operand, ptr::null_mut(), 0, out) })?;
        let mut dims = vec![Dim { value: 0, expr: 0 }; rank as usize];
        out(0, |out| unsafe { kiln_op_call_dims(self.0, operand, dims.as_mut_ptr(), rank, out) })?;
        Ok(dims)
    }
    pub fn result(&self, index: u32, dtype: u32, dims: &[Dim]) -> Result<()> {
        let struct_size = mem::size_of::<Type>() as u32;
        let (rank, dims) = (dims.len() as u32, dims.as_ptr());
        check(unsafe { kiln_op_call_result(self.0, index, &Type { struct_size, dtype, rank, layout: 0, dims, strides: ptr::null() }) })
    }
}

/// The edit of a pass's graph. A node is a number, a value is node << 32 | output.
pub struct Rewriter {
    context: Raw,
    edit: Raw,
    graph: Raw,
}

impl Rewriter {
    fn new(call: Raw) -> Self {
        let edit = unsafe { kiln_pass_edit(call) };
        Rewriter { context: unsafe { kiln_pass_context(call) }, edit, graph: unsafe { kiln_edit_view(edit) } }
    }
    pub fn nodes(&self) -> Result<Vec<u64>> {
        let count = out(0, |out| unsafe { kiln_graph_nodes(self.graph, ptr::null_mut(), 0, out) })?;
        let mut nodes = vec![0; count as usize];
        out(0, |out| unsafe { kiln_graph_nodes(self.graph, nodes.as_mut_ptr(), count, out) })?;
        Ok(nodes)
    }
    pub fn op(&self, name: &str) -> Result<u32> {
        out(0, |out| unsafe { kiln_op_find(self.context, name.as_ptr(), name.len() as u64, out) })
    }
    pub fn is(&self, node: u64, op: u32) -> bool {
        unsafe { kiln_node_op(self.graph, node) == op }
    }
    pub fn input(&self, node: u64, index: u32) -> u64 {
        unsafe { kiln_node_input(self.graph, node, index) }
    }
    pub fn constant(&self, value: f32) -> Result<u64> {
        let scalar = Array::new(&[], vec![value]);
        out(0, |out| unsafe { kiln_edit_constant(self.edit, ptr::null(), 0, &scalar.lent(), out) })
    }
    pub fn add(&self, op: u32, inputs: &[u64]) -> Result<u64> {
        let (values, count) = (inputs.as_ptr(), inputs.len() as u64);
        let node =
            out(0, |out| unsafe { kiln_edit_add(self.edit, op, ptr::null(), 0, values, count, ptr::null(), 0, out) })?;
        Ok(node << 32)
    }
    pub fn replace(&self, from: u64, to: u64) -> Result<()> {
        check(unsafe { kiln_edit_replace(self.edit, from, to) })
    }
}
