//! Values of attributes, annotations and options.
use super::abi::*;
use std::ffi::c_void;
use std::{ptr, slice};

impl Text {
    pub(crate) unsafe fn read(&self) -> String {
        String::from_utf8_lossy(row(self.data, self.size)).into_owned()
    }
}
/// Of no elements the pointer may be NULL.
pub(crate) unsafe fn row<'a, T>(data: *const T, count: u64) -> &'a [T] {
    if count == 0 {
        &[]
    } else {
        slice::from_raw_parts(data, count as usize)
    }
}

macro_rules! attrs {
    ($($one:ident $many:ident $type:ty = $kind:ident;)*) => {
        /// A value. `None` takes an annotation away. `Other` is one that is not read here (a graph), by its kind.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Attr { None, Text(String), Texts(Vec<String>), Other(u32), $($one($type), $many(Vec<$type>),)* }
        impl Attr {
            pub(crate) unsafe fn read(raw: &RawAttr) -> Attr {
                match (raw.kind & !ATTR_LIST, raw.kind & ATTR_LIST != 0) {
                    $(($kind, false) => Attr::$one(*raw.data.cast()),
                      ($kind, true) => Attr::$many(row(raw.data.cast(), raw.count).to_vec()),)*
                    (ATTR_TEXT, false) => Attr::Text((*raw.data.cast::<Text>()).read()),
                    (ATTR_TEXT, true) => {
                        Attr::Texts(row(raw.data.cast::<Text>(), raw.count).iter().map(|text| text.read()).collect())
                    }
                    (ATTR_NONE, _) => Attr::None,
                    (kind, _) => Attr::Other(kind),
                }
            }
            fn place(&self, texts: &[Text]) -> (u32, usize, *const c_void) {
                match self {
                    $(Attr::$one(value) => ($kind, 1, value as *const $type as *const c_void),
                      Attr::$many(values) => ($kind | ATTR_LIST, values.len(), values.as_ptr().cast()),)*
                    Attr::Text(_) => (ATTR_TEXT, 1, texts.as_ptr().cast()),
                    Attr::Texts(_) => (ATTR_TEXT | ATTR_LIST, texts.len(), texts.as_ptr().cast()),
                    Attr::None | Attr::Other(_) => (ATTR_NONE, 0, ptr::null()),
                }
            }
        }
        attrs! { conversions $($one $type, $many Vec<$type>,)* Text String, Texts Vec<String>, }
    };
    (conversions $($variant:ident $type:ty,)*) => { $(
        impl TryFrom<Attr> for $type {
            type Error = Attr;
            fn try_from(attr: Attr) -> std::result::Result<Self, Attr> {
                if let Attr::$variant(value) = attr { Ok(value) } else { Err(attr) }
            }
        }
    )* };
}
attrs! {
    I64 I64s i64 = ATTR_I64;
    F64 F64s f64 = ATTR_F64;
    Dtype Dtypes u32 = ATTR_DTYPE;
    Dim Dims Dim = ATTR_DIM;
    Bool Bools bool = ATTR_BOOL;
}
pub type Named<'a> = (&'a str, Attr);

/// Calls with the C form of these, which lives as long as the call.
pub(crate) fn with_raw<T>(attrs: &[Named], call: impl FnOnce(*const RawAttr, u64) -> T) -> T {
    let text = |text: &String| Text { data: text.as_ptr(), size: text.len() as u64 };
    let texts: Vec<Vec<Text>> = attrs
        .iter()
        .map(|(_, attr)| match attr {
            Attr::Text(one) => vec![text(one)],
            Attr::Texts(many) => many.iter().map(text).collect(),
            _ => vec![],
        })
        .collect();
    let raw: Vec<RawAttr> = attrs
        .iter()
        .zip(&texts)
        .map(|((name, attr), texts)| {
            let (kind, count, data) = attr.place(texts);
            RawAttr { name: name.as_ptr(), name_size: name.len() as u64, kind, reserved0: 0, count: count as u64, data }
        })
        .collect();
    call(raw.as_ptr(), raw.len() as u64)
}
