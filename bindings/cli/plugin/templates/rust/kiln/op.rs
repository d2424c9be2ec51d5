//! Ops.
use super::*;

/// An op: it has `decompose`, or `open`, or both. See `kiln_op_def` for the schema, and for what functions may do.
pub struct Op {
    pub schema: &'static str,
    /// None: graphs that use it bypass the cache.
    pub uuid: Option<[u8; 16]>,
    pub flags: u32,
    /// Tells the type of each result.
    pub infer: fn(&OpCall) -> Result<()>,
    /// Tells what the node is made of.
    pub decompose: Option<fn(&mut Decomposition) -> Result<()>>,
    /// What runs a node, when a call first does.
    pub open: Option<fn(&OpCall) -> Result<Run>>,
}
/// Makes results of operands; one thread at a time.
pub type Run = Box<dyn FnMut(&[Array], &mut [ArrayMut]) -> Result<()> + Send>;

struct Opened {
    operands: u64,
    run: Run,
}

impl Setup {
    pub fn add_op(&self, op: Op) -> Result<()> {
        type Function = extern "C" fn(Handle, Handle) -> Handle;
        let raw = RawOpDef {
            struct_size: mem::size_of::<RawOpDef>() as u32,
            flags: op.flags,
            schema: op.schema.as_ptr(),
            schema_size: op.schema.len() as u64,
            uuid: op.uuid.as_ref().map_or(ptr::null(), |uuid| uuid.as_ptr()),
            user: ptr::null_mut(),
            infer: Some(infer),
            decompose: op.decompose.map(|_| decompose as Function),
            open: op.open.map(|_| open as extern "C" fn(Handle, Handle, *mut Handle) -> Handle),
            run: op.open.map(|_| run as extern "C" fn(Handle, Handle, Arrays, u64, Handle) -> Handle),
            close: op.open.map(|_| close as extern "C" fn(Handle, Handle)),
            destroy: Some(let_go::<Op>),
        };
        lend(self.host, Op { ..op }, |user| ask!(self.host, context.add_op(self.context, &RawOpDef { user, ..raw })))
    }
}

extern "C" fn infer(user: Handle, call: Handle) -> Handle {
    let Held { host, own: op } = unsafe { held::<Op>(user) };
    host.guard(|| (op.infer)(&OpCall { host: *host, call }))
}
extern "C" fn decompose(user: Handle, call: Handle) -> Handle {
    let Held { host, own: op } = unsafe { held::<Op>(user) };
    host.guard(|| op.decompose.map_or(Ok(()), |decompose| decompose(&mut Decomposition(OpCall { host: *host, call }))))
}
extern "C" fn open(user: Handle, call: Handle, state: *mut Handle) -> Handle {
    let Held { host, own: op } = unsafe { held::<Op>(user) };
    host.guard(|| {
        if let Some(open) = op.open {
            let call = OpCall { host: *host, call };
            let opened = Box::new(Opened { operands: u64::from(call.operand_count()), run: open(&call)? });
            unsafe { *state = Box::into_raw(opened).cast() };
        }
        Ok(())
    })
}
extern "C" fn run(user: Handle, state: Handle, arrays: Arrays, count: u64, _options: Handle) -> Handle {
    let host = unsafe { held::<Op>(user) }.host;
    host.guard(|| {
        let opened = unsafe { &mut *state.cast::<Opened>() };
        let (operands, mut results) = unsafe { split(arrays, count, count - opened.operands) };
        (opened.run)(&operands, &mut results)
    })
}
extern "C" fn close(_user: Handle, state: Handle) {
    drop_quietly::<Opened>(state);
}

/// What infer and open see of a node.
pub struct OpCall {
    host: Host,
    call: Handle,
}
impl OpCall {
    pub fn operand_count(&self) -> u32 {
        ask!(self.host, op_call.operand_count(self.call))
    }
    pub fn dtype(&self, operand: u32) -> Result<u32> {
        self.host.told(0, |out| ask!(self.host, op_call.dtype(self.call, operand, out)))
    }
    pub fn dims(&self, operand: u32) -> Result<Vec<Dim>> {
        let ask = |buffer, capacity, out| ask!(self.host, op_call.dims(self.call, operand, buffer, capacity, out));
        self.host.list(Dim { value: 0, expr: 0 }, ask)
    }
    /// An attribute, defaults filled in: `call.attr::<f64>("by")?`.
    pub fn attr<T: TryFrom<Attr, Error = Attr>>(&self, name: &str) -> Result<T> {
        let found = self.host.get(name, |out| ask!(text self.host, op_call.attr(self.call; name, out)))?;
        Host::some(name, found)
    }
    /// An expression: "n // 2 + 1".
    pub fn dim(&self, expression: &str) -> Result<Dim> {
        let context = self.context();
        let none = Dim { value: 0, expr: 0 };
        self.host.told(none, |out| ask!(text self.host, dim.parse(context; expression, out)))
    }
    pub fn text(&self, dim: Dim) -> Result<String> {
        let context = self.context();
        self.host.text(|out| ask!(self.host, dim.text(context, &dim, out)))
    }
    /// Inside infer: the type of a result.
    pub fn result(&self, index: u32, dtype: u32, dims: &[Dim]) -> Result<()> {
        let told = RawType {
            struct_size: mem::size_of::<RawType>() as u32,
            dtype,
            rank: dims.len() as u32,
            layout: 0,
            dims: dims.as_ptr(),
            strides: ptr::null(),
        };
        self.host.check(ask!(self.host, op_call.result(self.call, index, &told)))
    }
    /// Inside infer: sizes that must be equal. `what` names both: "a dim 1 and b dim 0".
    pub fn require_equal(&self, a: Dim, b: Dim, what: &str) -> Result<()> {
        self.host.check(ask!(text self.host, op_call.require_equal(self.call, &a, &b; what)))
    }
    fn context(&self) -> Handle {
        ask!(self.host, op_call.context(self.call))
    }
}

/// What decompose sees of a node, and puts in its place (`Edit` adds).
pub struct Decomposition(OpCall);
is_also!(Decomposition.0: OpCall);
impl Edit for Decomposition {
    fn place(&self) -> (Host, Handle, Handle) {
        (self.host, self.context(), ask!(self.host, op_call.edit(self.call)))
    }
}
impl Decomposition {
    /// Value(0): an optional one that was left out.
    pub fn operand(&self, index: u32) -> Value {
        ask!(self.host, op_call.operand(self.call, index))
    }
    /// The value is the node's result.
    pub fn give(&mut self, index: u32, value: Value) -> Result<()> {
        self.host.check(ask!(self.host, op_call.r#yield(self.call, index, value)))
    }
}
