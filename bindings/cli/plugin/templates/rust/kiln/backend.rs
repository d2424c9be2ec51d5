//! Backends.
use super::*;

/// A backend of arrays on the CPU: see `kiln_backend` for what becomes of a region, and on which threads.
pub trait Backend: Sized + Send + Sync + 'static {
    /// What a region's bytes become; runs of it may be at once.
    type Program: Send + Sync + 'static;
    const NAME: &'static str;
    const VERSION: &'static str;
    const UUID: Option<[u8; 16]>;
    const FLAGS: u32 = 0;

    /// With their defaults.
    fn options() -> Vec<Named<'static>> {
        vec![]
    }
    /// Tells (`BackendCall::key`) all else that its bytes depend on.
    fn target(&self, _call: &BackendCall) -> Result<()> {
        Ok(())
    }
    /// Whether it takes the node; what it does not take, `return call.refuse("why")`.
    fn takes(&self, call: &BackendCall, graph: &Graph, node: Node) -> Result<bool>;
    /// The same bytes for the same region and options.
    fn compile(&self, call: &BackendCall, region: &Graph) -> Result<Vec<u8>>;
    /// They may come from a file that somebody changed.
    fn load(&self, bytes: &[u8]) -> Result<Self::Program>;
    /// `arrays` are the region's inputs, then its parameters; `results` its outputs.
    fn run(&self, program: &Self::Program, arrays: &[Array], results: &mut [ArrayMut]) -> Result<()>;
}

/// Before the bytes that a backend makes of a region stands how many outputs it has.
const COUNT_SIZE: usize = mem::size_of::<u64>();
struct Loaded<P> {
    results: u64,
    program: P,
}

impl Setup {
    pub fn add_backend<B: Backend>(&self, backend: B) -> Result<()> {
        lend(self.host, backend, |user| {
            with_raw(&B::options(), |options, option_count| {
                let raw = RawBackend {
                    struct_size: mem::size_of::<RawBackend>() as u32,
                    flags: B::FLAGS,
                    name: B::NAME.as_ptr(),
                    name_size: B::NAME.len() as u64,
                    version: B::VERSION.as_ptr(),
                    version_size: B::VERSION.len() as u64,
                    uuid: B::UUID.as_ref().map_or(ptr::null(), |uuid| uuid.as_ptr()),
                    options,
                    option_count,
                    device_type: 1,
                    reserved0: 0,
                    user,
                    target: Some(target::<B>),
                    takes: Some(takes::<B>),
                    compile: Some(compile::<B>),
                    load: Some(load::<B>),
                    prepare: None,
                    open: None,
                    run: Some(run::<B>),
                    close: None,
                    release: None,
                    unload: Some(unload::<B>),
                    destroy: Some(let_go::<B>),
                };
                ask!(self.host, context.add_backend(self.context, &raw))
            })
        })
    }
}

extern "C" fn target<B: Backend>(user: Handle, call: Handle) -> Handle {
    let Held { host, own: backend } = unsafe { held::<B>(user) };
    host.guard(|| backend.target(&BackendCall { host: *host, call }))
}
extern "C" fn takes<B: Backend>(user: Handle, call: Handle, graph: Handle, node: Node, out: *mut u32) -> Handle {
    let Held { host, own: backend } = unsafe { held::<B>(user) };
    host.guard(|| {
        let taken = backend.takes(&BackendCall { host: *host, call }, &Graph { host: *host, raw: graph }, node)?;
        unsafe { *out = u32::from(taken) };
        Ok(())
    })
}
extern "C" fn compile<B: Backend>(user: Handle, call: Handle, region: Handle) -> Handle {
    let Held { host, own: backend } = unsafe { held::<B>(user) };
    host.guard(|| {
        let region = Graph { host: *host, raw: region };
        let mut blob = (region.outputs()?.len() as u64).to_le_bytes().to_vec();
        blob.extend(backend.compile(&BackendCall { host: *host, call }, &region)?);
        host.check(ask!(host, backend.blob(call, blob.as_ptr(), blob.len() as u64)))
    })
}
extern "C" fn load<B: Backend>(user: Handle, blob: *const u8, size: u64, program: *mut Handle) -> Handle {
    let Held { host, own: backend } = unsafe { held::<B>(user) };
    host.guard(|| {
        let blob = unsafe { row(blob, size) };
        let (count, bytes) = blob.split_at(blob.len().min(COUNT_SIZE));
        let results = match count.try_into() {
            Ok(count) => u64::from_le_bytes(count),
            Err(_) => return fail(CORRUPT, "the bytes are no program"),
        };
        let loaded = Box::new(Loaded { results, program: backend.load(bytes)? });
        unsafe { *program = Box::into_raw(loaded).cast() };
        Ok(())
    })
}
extern "C" fn run<B: Backend>(
    user: Handle,
    program: Handle,
    _prepared: Handle,
    _state: Handle,
    arrays: Arrays,
    count: u64,
    _options: Handle,
) -> Handle {
    let Held { host, own: backend } = unsafe { held::<B>(user) };
    host.guard(|| {
        let loaded = unsafe { &*program.cast::<Loaded<B::Program>>() };
        if loaded.results > count {
            return fail(CORRUPT, "the program is of another region");
        }
        let (read, mut written) = unsafe { split(arrays, count, loaded.results) };
        backend.run(&loaded.program, &read, &mut written)
    })
}
extern "C" fn unload<B: Backend>(_user: Handle, program: Handle) {
    drop_quietly::<Loaded<B::Program>>(program);
}

/// One call of target, takes or compile.
pub struct BackendCall {
    host: Host,
    call: Handle,
}
impl BackendCall {
    /// Inside takes and compile: the region's value of an option of the backend, or of "kiln.rounding".
    pub fn option<T: TryFrom<Attr, Error = Attr>>(&self, name: &str) -> Result<T> {
        let found = self.host.get(name, |out| ask!(text self.host, backend.option(self.call; name, out)))?;
        Host::some(name, found)
    }
    /// Inside target: adds to what the backend's bytes depend on.
    pub fn key(&self, bytes: &[u8]) -> Result<()> {
        self.host.check(ask!(text self.host, backend.key(self.call; bytes)))
    }
    /// Inside takes: the answer no, with a reason for people.
    pub fn refuse(&self, why: &str) -> Result<bool> {
        self.host.check(ask!(text self.host, backend.refuse(self.call; why))).map(|_| false)
    }
}
