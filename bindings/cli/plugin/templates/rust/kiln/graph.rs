//! Graphs, to be read and edited, and arrays.
use super::*;
use std::ffi::c_void;

impl Node {
    pub fn result(self, index: u32) -> Value {
        Value(self.0 << 32 | u64::from(index))
    }
}
impl Value {
    /// That it is a result of.
    pub fn node(self) -> Node {
        Node(self.0 >> 32)
    }
}

/// A graph as it stands: of a pass it follows each change. Questions about a node or value that is not there are answered
/// by 0, or are an error.
pub struct Graph {
    pub(crate) host: Host,
    pub(crate) raw: Handle,
}

impl Graph {
    /// In topological order.
    pub fn nodes(&self) -> Result<Vec<Node>> {
        self.host.list(Node(0), |buffer, capacity, out| ask!(self.host, graph.nodes(self.raw, buffer, capacity, out)))
    }
    pub fn inputs(&self) -> Result<Vec<Value>> {
        self.side(SIDE_INPUTS)
    }
    pub fn parameters(&self) -> Result<Vec<Value>> {
        self.side(SIDE_PARAMETERS)
    }
    pub fn outputs(&self) -> Result<Vec<Value>> {
        self.side(SIDE_OUTPUTS)
    }
    fn side(&self, side: u32) -> Result<Vec<Value>> {
        let ask = |buffer, capacity, out| ask!(self.host, graph.signature(self.raw, side, buffer, capacity, out));
        self.host.list(Value(0), ask)
    }

    /// NODE_INPUT ...
    pub fn kind(&self, node: Node) -> u32 {
        ask!(self.host, node.kind(self.raw, node))
    }
    /// For people: it is in no key.
    pub fn name(&self, node: Node) -> Result<String> {
        self.host.text(|out| ask!(self.host, node.name(self.raw, node, out)))
    }
    /// OpId(0), which no op has, unless it is an op node.
    pub fn op_of(&self, node: Node) -> OpId {
        ask!(self.host, node.op(self.raw, node))
    }
    /// Whether the node is of this op, and no attribute but those named differs from its default.
    pub fn is(&self, node: Node, op: OpId, named: &[&str]) -> bool {
        let unnamed = |(name, _): &(String, Attr)| !named.contains(&name.as_str());
        op != OpId(0) && self.op_of(node) == op && self.attrs(node).map_or(false, |attrs| !attrs.iter().any(unnamed))
    }
    pub fn operand_count(&self, node: Node) -> u32 {
        ask!(self.host, node.input_count(self.raw, node))
    }
    pub fn operand(&self, node: Node, index: u32) -> Value {
        ask!(self.host, node.input(self.raw, node, index))
    }
    pub fn operands(&self, node: Node) -> Vec<Value> {
        (0..self.operand_count(node)).map(|index| self.operand(node, index)).collect()
    }
    pub fn result_count(&self, node: Node) -> u32 {
        ask!(self.host, node.output_count(self.raw, node))
    }
    /// An attribute, defaults included: `graph.attr::<i64>(node, "dim")?`.
    pub fn attr<T: TryFrom<Attr, Error = Attr>>(&self, node: Node, name: &str) -> Result<T> {
        let found = self.host.get(name, |out| ask!(text self.host, node.attr(self.raw, node; name, out)))?;
        Host::some(name, found)
    }
    /// Those that differ from their defaults, by name.
    pub fn attrs(&self, node: Node) -> Result<Vec<(String, Attr)>> {
        self.host.attrs(|buffer, capacity, out| ask!(self.host, node.attrs(self.raw, node, buffer, capacity, out)))
    }
    pub fn annotations(&self, node: Node) -> Result<Vec<(String, Attr)>> {
        self.host
            .attrs(|buffer, capacity, out| ask!(self.host, node.annotations(self.raw, node, buffer, capacity, out)))
    }
    /// The elements of a constant node.
    pub fn constant(&self, node: Node) -> Result<Array<'_>> {
        let found = self.host.told(ptr::null(), |out| ask!(self.host, node.constant(self.raw, node, out)))?;
        Ok(Array(unsafe { &*found }))
    }

    /// How often it is an operand or an output; nodes count that nothing uses any more.
    pub fn use_count(&self, value: Value) -> u32 {
        ask!(self.host, value.use_count(self.raw, value))
    }
    /// The op nodes that use it, each once.
    pub fn users(&self, value: Value) -> Result<Vec<Node>> {
        let ask = |buffer, capacity, out| ask!(self.host, value.users(self.raw, value, buffer, capacity, out));
        self.host.list(Node(0), ask)
    }
    /// F32 ...
    pub fn dtype(&self, value: Value) -> Result<u32> {
        self.host.told(0, |out| ask!(self.host, value.dtype(self.raw, value, out)))
    }
    pub fn dims(&self, value: Value) -> Result<Vec<Dim>> {
        let ask = |buffer, capacity, out| ask!(self.host, value.dims(self.raw, value, buffer, capacity, out));
        self.host.list(Dim { value: 0, expr: 0 }, ask)
    }
    /// The value that it is a view of; Value(0): none.
    pub fn view_of(&self, value: Value) -> Value {
        ask!(self.host, value.view_of(self.raw, value))
    }
}

/// What a pass and a decomposition can add.
pub trait Edit {
    /// The host, the context, and the edit in it.
    fn place(&self) -> (Host, Handle, Handle);

    fn op(&self, name: &str) -> Result<OpId> {
        let (host, context, _) = self.place();
        host.find(context, name)
    }
    /// Adds an op node; its first result.
    fn add(&mut self, op: OpId, operands: &[Value], attrs: &[Named]) -> Result<Value> {
        Ok(self.add_node(op, operands, attrs)?.result(0))
    }
    fn add_node(&mut self, op: OpId, operands: &[Value], attrs: &[Named]) -> Result<Node> {
        let (host, _, edit) = self.place();
        let (values, count) = (operands.as_ptr(), operands.len() as u64);
        with_raw(attrs, |attrs, attr_count| {
            let unnamed = "";
            let add = |out| ask!(text host, edit.add(edit, op; unnamed, values, count, attrs, attr_count, out));
            host.told(Node(0), add)
        })
    }
    /// Adds a constant of this shape, of as many values; they are copied.
    fn add_constant<T: Element>(&mut self, shape: &[i64], values: &[T]) -> Result<Value> {
        let (host, _, edit) = self.place();
        if shape.iter().product::<i64>() != values.len() as i64 {
            return fail(INVALID_ARGUMENT, format!("a constant of shape {shape:?} has not {} elements", values.len()));
        }
        let tensor = DLTensor {
            data: values.as_ptr() as *mut c_void, // read only
            device_type: 1,
            device_id: 0,
            ndim: shape.len() as i32,
            code: T::CODE,
            bits: 8 * mem::size_of::<T>() as u8,
            lanes: 1,
            shape: shape.as_ptr(),
            strides: ptr::null(),
            byte_offset: 0,
        };
        let unnamed = "";
        host.told(Value(0), |out| ask!(text host, edit.constant(edit; unnamed, &tensor, out)))
    }
}

/// What an array may hold, by DLPack's code.
pub trait Element: Copy + sealed::Sealed {
    const CODE: u8;
}
mod sealed {
    pub trait Sealed {}
}
macro_rules! elements {
    ($($type:ty: $code:literal)*) => { $(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const CODE: u8 = $code;
        }
    )* };
}
/// Types that Rust does not have, or not for each pattern of bits.
macro_rules! bits {
    ($($name:ident($bits:ty))*) => { $(
        #[derive(Clone, Copy, PartialEq, Debug)]
        #[repr(transparent)]
        pub struct $name(pub $bits);
    )* };
}
bits! { BitsOfF16(u16) BitsOfBf16(u16) Truth(u8) }
elements! { i8: 0 i16: 0 i32: 0 i64: 0 u8: 1 u16: 1 u32: 1 u64: 1 f32: 2 f64: 2 BitsOfF16: 2 BitsOfBf16: 4 Truth: 6 }

/// A row-major array on the CPU, to be read.
pub struct Array<'a>(pub(crate) &'a DLTensor);
/// One to be written: a result, which is not initialised.
pub struct ArrayMut<'a>(pub(crate) &'a DLTensor);

impl<'a> Array<'a> {
    pub fn shape(&self) -> &'a [i64] {
        unsafe { row(self.0.shape, self.0.ndim as u64) }
    }
    /// Its elements. An error if they are of another type.
    pub fn read<T: Element>(&self) -> Result<&'a [T]> {
        let (data, count) = self.0.elements()?;
        Ok(unsafe { row(data, count) })
    }
}
impl ArrayMut<'_> {
    pub fn shape(&self) -> &[i64] {
        Array(self.0).shape()
    }
    pub fn write<T: Element>(&mut self) -> Result<&mut [T]> {
        match self.0.elements()? {
            (_, 0) => Ok(&mut []),
            (data, count) => Ok(unsafe { std::slice::from_raw_parts_mut(data, count as usize) }),
        }
    }
}
impl DLTensor {
    fn elements<T: Element>(&self) -> Result<(*mut T, u64)> {
        if (self.code, u32::from(self.bits)) != (T::CODE, 8 * mem::size_of::<T>() as u32) {
            let name = std::any::type_name::<T>();
            return fail(TYPE_MISMATCH, format!("elements are of code {}, {} bits; not {name}", self.code, self.bits));
        }
        let count: i64 = Array(self).shape().iter().product();
        Ok((unsafe { self.data.cast::<u8>().add(self.byte_offset as usize).cast() }, count as u64))
    }
}
/// The arrays of one run: those that are read, then `results` that are written.
pub(crate) unsafe fn split<'a>(
    arrays: *const *const DLTensor,
    count: u64,
    results: u64,
) -> (Vec<Array<'a>>, Vec<ArrayMut<'a>>) {
    let (read, written) = row(arrays, count).split_at((count - results) as usize);
    (read.iter().map(|at| Array(&**at)).collect(), written.iter().map(|at| ArrayMut(&**at)).collect())
}
