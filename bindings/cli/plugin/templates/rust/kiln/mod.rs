//! Kiln plugins in Rust: passes, ops and backends, by the standard library alone (Rust 1.63 or later, edition 2021).
//!
//! This folder lies beside the plugin's source, whose crate root says `mod kiln;`. The plugin links nothing of Kiln: the
//! host hands it tables of functions (abi.rs). Only there and in these files is anything unsafe. What fails is an `Err`,
//! to be passed on by `?`. A panic inside of a callback does not reach the host: it is the callback's error, with its
//! text and where it was. (What aborts, a stack that overflows, say, still ends the process.)
//!
//! What a pass, an op or a backend may do, and what its result may depend on, is told in kiln/types.h (`kiln_pass`,
//! `kiln_op_def`) and kiln/backend.h; of what a method asks, kiln/graph.h tells all.
#![allow(dead_code, unused_imports)] // a plugin uses a part of it

use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe};
use std::{fmt, mem, ptr, sync};

#[cfg(panic = "abort")]
compile_error!("a panic would end the host's process: build the plugin with panic=unwind");

/// ask!(host, GROUP.SLOT(arguments)); `text` puts a string's address and size where the `;` stands before it. It touches
/// the slot alone: an older host's table ends before newer ones.
macro_rules! ask {
    (text $host:expr, $group:ident.$slot:ident($($before:expr),*; $text:expr $(, $after:expr)*)) => {
        ask!($host, $group.$slot($($before,)* $text.as_ptr(), $text.len() as u64 $(, $after)*))
    };
    ($host:expr, $group:ident.$slot:ident($($argument:expr),*)) => {
        unsafe { ((*(*$host.0).$group).$slot)($($argument),*) }
    };
}

/// is_also!(Match.0: Rewriter): what has a member and answers all that it does.
macro_rules! is_also {
    ($of:ident.$member:tt: $to:ty) => {
        impl std::ops::Deref for $of {
            type Target = $to;
            fn deref(&self) -> &$to {
                &self.$member
            }
        }
    };
}

mod abi;
mod attr;
mod backend;
mod graph;
mod op;
mod pass;
pub use {abi::*, attr::*, backend::*, graph::*, op::*, pass::*};

// ---- Entry and note

/// `kiln::entry!("name", kiln::FEATURE_OPS, setup);` once, in the crate root. The name has at most 63 bytes; the features
/// are those that it cannot do without, or 0; `setup`, a `fn(&Setup) -> Result<()>`, registers what the plugin brings.
macro_rules! entry {
    ($name:expr, $features:expr, $setup:path) => {
        #[used]
        #[link_section = ".note.kiln"]
        static KILN_PLUGIN_NOTE: $crate::kiln::RawPluginNote = $crate::kiln::note($name, $features);
        #[no_mangle]
        pub extern "C" fn kiln_plugin_entry_v1() -> *const $crate::kiln::RawPlugin {
            use $crate::kiln::{set_up, table, Handle, RawHost, RawPlugin};
            extern "C" fn enter(host: *const RawHost, context: Handle, _state: *mut Handle) -> Handle {
                set_up(host, context, $setup)
            }
            static TABLE: RawPlugin = table($name, $features, enter);
            &TABLE
        }
    };
}
pub(crate) use entry;

// ---- Errors, and calls of the host

#[derive(Clone, Debug)]
pub struct Error {
    pub code: u32,
    pub message: String,
}
pub type Result<T> = std::result::Result<T, Error>;
impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str(&self.message)
    }
}
impl std::error::Error for Error {}
/// An error to return: `return fail(TYPE_MISMATCH, "it is no matrix")`.
pub fn fail<T>(code: u32, message: impl Into<String>) -> Result<T> {
    Err(Error { code, message: message.into() })
}

/// The host's tables, which live as long as the process.
#[derive(Clone, Copy)]
pub struct Host(*const RawHost);
unsafe impl Send for Host {}
unsafe impl Sync for Host {}

thread_local! {
    static INSIDE: Cell<u32> = const { Cell::new(0) }; // of how many callbacks
    static WHERE: RefCell<String> = RefCell::default(); // the last panic was
}

impl Host {
    pub(crate) fn check(self, error: Handle) -> Result<()> {
        if error.is_null() {
            return Ok(());
        }
        let code = ask!(self, error.code(error));
        let message = self.text(|out| {
            ask!(self, error.message(error, out));
            ptr::null_mut()
        })?;
        ask!(self, error.destroy(error));
        fail(code, message)
    }
    /// What a call writes to its last argument.
    pub(crate) fn told<T>(self, mut value: T, call: impl FnOnce(*mut T) -> Handle) -> Result<T> {
        self.check(call(&mut value)).map(|_| value)
    }
    pub(crate) fn list<T: Copy>(self, empty: T, call: impl Fn(*mut T, u64, *mut u64) -> Handle) -> Result<Vec<T>> {
        let count = self.told(0, |out| call(ptr::null_mut(), 0, out))?;
        let mut items = vec![empty; count as usize];
        self.told(0, |out| call(items.as_mut_ptr(), count, out)).map(|_| items)
    }
    pub(crate) fn text(self, call: impl FnOnce(*mut Text) -> Handle) -> Result<String> {
        self.told(unsafe { mem::zeroed() }, call).map(|text: Text| unsafe { text.read() })
    }
    pub(crate) fn attrs(self, call: impl Fn(*mut RawAttr, u64, *mut u64) -> Handle) -> Result<Vec<(String, Attr)>> {
        let raw = self.list(unsafe { mem::zeroed() }, call)?;
        let name = |attr: &RawAttr| unsafe { Text { data: attr.name, size: attr.name_size }.read() };
        Ok(raw.iter().map(|attr| (name(attr), unsafe { Attr::read(attr) })).collect())
    }
    /// None: the answer has no value.
    pub(crate) fn get<T: TryFrom<Attr, Error = Attr>>(
        self,
        name: &str,
        call: impl FnOnce(*mut RawAttr) -> Handle,
    ) -> Result<Option<T>> {
        match unsafe { Attr::read(&self.told(mem::zeroed(), call)?) } {
            Attr::None => Ok(None),
            found => match T::try_from(found) {
                Ok(value) => Ok(Some(value)),
                Err(other) => fail(TYPE_MISMATCH, format!("'{name}' is {other:?}, of another kind than was asked for")),
            },
        }
    }
    pub(crate) fn some<T>(name: &str, found: Option<T>) -> Result<T> {
        found.map_or_else(|| fail(UNKNOWN_NAME, format!("'{name}' has no value")), Ok)
    }
    pub(crate) fn find(self, context: Handle, name: &str) -> Result<OpId> {
        self.told(OpId(0), |out| ask!(text self, op.find(context; name, out)))
    }
    /// Runs what a callback does; what fails in it, or panics, is an error for the host.
    pub(crate) fn guard(self, action: impl FnOnce() -> Result<()>) -> Handle {
        INSIDE.with(|depth| depth.set(depth.get() + 1));
        let ended = catch_unwind(AssertUnwindSafe(action));
        INSIDE.with(|depth| depth.set(depth.get() - 1));
        let error = match ended {
            Ok(Ok(())) => return ptr::null_mut(),
            Ok(Err(error)) => error,
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().copied();
                let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
                let place = WHERE.with(|place| place.take());
                Error { code: EXCEPTION, message: format!("it panicked{place}: {}", text.unwrap_or("no text")) }
            }
        };
        ask!(self, error.create(error.code, error.message.as_ptr(), error.message.len() as u64, ptr::null_mut()))
    }
}

pub fn set_up(host: *const RawHost, context: Handle, setup: fn(&Setup) -> Result<()>) -> Handle {
    static HOOK: sync::Once = sync::Once::new();
    HOOK.call_once(|| {
        let usual = take_hook(); // of panics elsewhere, on threads of the plugin's
        set_hook(Box::new(move |info| match INSIDE.with(Cell::get) {
            0 => usual(info),
            _ => {
                let at = info.location().map_or(String::new(), |at| format!(" at {at}"));
                WHERE.with(|place| *place.borrow_mut() = at);
            }
        }))
    });
    Host(host).guard(|| setup(&Setup { host: Host(host), context }))
}

/// What setup registers in.
pub struct Setup {
    pub(crate) host: Host,
    pub(crate) context: Handle,
}
impl Setup {
    /// A built-in op's number; the plugin's own have theirs once it is loaded.
    pub fn op(&self, name: &str) -> Result<OpId> {
        self.host.find(self.context, name)
    }
    /// Says that what is added after this follows from the file, too, which the plugin reads.
    pub fn add_file(&self, path: &str) -> Result<()> {
        self.host.check(ask!(text self.host, context.add_file(self.context; path)))
    }
}

// ---- What callbacks find by `user`: the plugin's object, which the host owns until it calls `let_go`.

pub(crate) struct Held<T> {
    pub host: Host,
    pub own: T,
}
pub(crate) unsafe fn held<'a, T>(user: Handle) -> &'a Held<T> {
    &*user.cast()
}
pub(crate) fn lend<T>(host: Host, own: T, add: impl FnOnce(Handle) -> Handle) -> Result<()> {
    let user = Box::into_raw(Box::new(Held { host, own }));
    let added = host.check(add(user.cast()));
    if added.is_err() {
        drop(unsafe { Box::from_raw(user) }); // it was not taken
    }
    added
}
pub(crate) extern "C" fn let_go<T>(user: Handle) {
    drop_quietly::<Held<T>>(user);
}
pub(crate) fn drop_quietly<T>(object: Handle) {
    let _ = catch_unwind(|| drop(unsafe { Box::from_raw(object.cast::<T>()) }));
}
