//! Passes.
use super::*;
use std::ops::DerefMut;

/// A pass: `Pass { priority: 2000, ..Pass::new("name", "1", UUID, rewrite) }`. See `kiln_pass` for what each member says.
pub struct Pass {
    pub name: &'static str,
    /// Of what it makes: raise it when that changes.
    pub version: &'static str,
    /// None: it has no identity, and what it makes is not cached.
    pub uuid: Option<[u8; 16]>,
    pub stage: u32,
    pub priority: i32,
    pub timing: u32,
    pub flags: u32,
    pub label: &'static str,
    /// With their defaults.
    pub options: Vec<Named<'static>>,
    /// The plugin says FEATURE_PATTERNS, and `rewrite` calls `apply_patterns`.
    pub patterns: Vec<Pattern>,
    pub rewrite: Rewrite,
}
/// Returns how many places it rewrote.
pub type Rewrite = Box<dyn Fn(&mut Rewriter) -> Result<u64> + Send + Sync>;

impl Pass {
    /// Of stage post_grad.
    pub fn new(
        name: &'static str,
        version: &'static str,
        uuid: [u8; 16],
        rewrite: impl Fn(&mut Rewriter) -> Result<u64> + Send + Sync + 'static,
    ) -> Pass {
        Pass {
            name,
            version,
            uuid: Some(uuid),
            stage: STAGE_POST_GRAD,
            priority: 0,
            timing: 0,
            flags: 0,
            label: "",
            options: vec![],
            patterns: vec![],
            rewrite: Box::new(rewrite),
        }
    }
    /// A pass that is nothing but its patterns, of stage post_grad.
    pub fn of_patterns(name: &'static str, version: &'static str, uuid: [u8; 16], patterns: Vec<Pattern>) -> Pass {
        Pass { patterns, ..Pass::new(name, version, uuid, |graph| graph.apply_patterns()) }
    }
}

/// What a pass looks for, as JSON (docs/patterns.md), and what takes its place.
#[derive(Clone, Copy)]
pub struct Pattern {
    json: &'static str,
    rewrite: Option<extern "C" fn(Handle, Handle) -> Handle>,
}
impl Pattern {
    /// The JSON has a replacement.
    pub const fn new(json: &'static str) -> Pattern {
        Pattern { json, rewrite: None }
    }
    /// The JSON has none: at each place where the pattern is found the function is called, which is a `fn`, or a closure
    /// that captures nothing. A place that it does not replace stays.
    pub fn calling<F: Fn(&mut Match) -> Result<()> + Copy + 'static>(json: &'static str, _rewrite: F) -> Pattern {
        assert!(mem::size_of::<F>() == 0, "Pattern::calling: a fn is expected by its name, or a closure without captures");
        Pattern { json, rewrite: Some(rewrite_match::<F>) }
    }
}

impl Setup {
    pub fn add_pass(&self, pass: Pass) -> Result<()> {
        let pattern = |pattern: &Pattern| RawPattern {
            struct_size: mem::size_of::<RawPattern>() as u32,
            reserved0: 0,
            json: pattern.json.as_ptr(),
            json_size: pattern.json.len() as u64,
            rewrite: pattern.rewrite,
        };
        let patterns: Vec<RawPattern> = pass.patterns.iter().map(pattern).collect();
        let patterns: Vec<*const RawPattern> = patterns.iter().map(|pattern| pattern as *const RawPattern).collect();
        lend(self.host, pass.rewrite, |user| {
            with_raw(&pass.options, |options, option_count| {
                let raw = RawPass {
                    struct_size: mem::size_of::<RawPass>() as u32,
                    stage: pass.stage,
                    priority: pass.priority,
                    timing: pass.timing,
                    flags: pass.flags,
                    reserved0: 0,
                    name: pass.name.as_ptr(),
                    name_size: pass.name.len() as u64,
                    version: pass.version.as_ptr(),
                    version_size: pass.version.len() as u64,
                    uuid: pass.uuid.as_ref().map_or(ptr::null(), |uuid| uuid.as_ptr()),
                    options,
                    option_count,
                    user,
                    run: Some(run),
                    fingerprint: None,
                    destroy: Some(let_go::<Rewrite>),
                    label: pass.label.as_ptr(),
                    label_size: pass.label.len() as u64,
                    patterns: patterns.as_ptr(),
                    pattern_count: patterns.len() as u64,
                };
                ask!(self.host, context.add_pass(self.context, &raw))
            })
        })
    }
}

extern "C" fn run(user: Handle, call: Handle) -> Handle {
    let Held { host, own: rewrite } = unsafe { held::<Rewrite>(user) };
    host.guard(|| {
        let rewrites = rewrite(&mut Rewriter::of(*host, call))?;
        host.check(ask!(host, pass.done(call, rewrites)))
    })
}
extern "C" fn rewrite_match<F: Fn(&mut Match) -> Result<()> + Copy + 'static>(user: Handle, call: Handle) -> Handle {
    let host = unsafe { held::<Rewrite>(user) }.host;
    let rewrite: F = unsafe { mem::transmute_copy(&()) }; // it has no size, and Pattern::calling was given one
    host.guard(|| rewrite(&mut Match(Rewriter::of(host, call))))
}

/// The graph of a running pass: questions (`Graph`) and changes (`Edit` adds).
pub struct Rewriter {
    graph: Graph,
    call: Handle,
    context: Handle,
    edit: Handle,
}
is_also!(Rewriter.graph: Graph);
impl Edit for Rewriter {
    fn place(&self) -> (Host, Handle, Handle) {
        (self.graph.host, self.context, self.edit)
    }
}
impl Rewriter {
    fn of(host: Host, call: Handle) -> Rewriter {
        let edit = ask!(host, pass.edit(call));
        let graph = Graph { host, raw: ask!(host, edit.view(edit)) };
        Rewriter { graph, call, context: ask!(host, pass.context(call)), edit }
    }
    /// Makes every use of `from` one of `to`, which has the same type.
    pub fn replace(&mut self, from: Value, to: Value) -> Result<()> {
        self.host.check(ask!(self.host, edit.replace(self.edit, from, to)))
    }
    /// Sets annotations of a node; others stay. `Attr::None` takes one away.
    pub fn annotate(&mut self, node: Node, annotations: &[Named]) -> Result<()> {
        let annotate = |attrs, count| ask!(self.host, edit.annotate(self.edit, node, attrs, count));
        self.host.check(with_raw(annotations, annotate))
    }
    /// The graph's outputs, of which there must be as many, of the same types; names are kept.
    pub fn set_outputs(&mut self, values: &[Value]) -> Result<()> {
        let (row, count) = (values.as_ptr(), values.len() as u64);
        self.host.check(ask!(self.host, edit.outputs(self.edit, row, ptr::null(), count)))
    }
    /// Rewrites by the pass's patterns; how often.
    pub fn apply_patterns(&mut self) -> Result<u64> {
        self.host.told(0, |out| ask!(self.host, pass.apply_patterns(self.call, out)))
    }
    /// The value of an option that the pass declared.
    pub fn option<T: TryFrom<Attr, Error = Attr>>(&self, name: &str) -> Result<T> {
        let found = self.host.get(name, |out| ask!(text self.host, pass.option(self.call; name, out)))?;
        Host::some(name, found)
    }
    /// What neither graph nor key has, "host.rank": the result may depend on it. None: there is no such fact.
    pub fn query<T: TryFrom<Attr, Error = Attr>>(&self, question: &str) -> Result<Option<T>> {
        self.host.get(question, |out| ask!(text self.host, pass.query(self.call; question, out)))
    }
    /// Why no other compile may be given what the pass makes: it reads what cannot be asked for.
    pub fn uncacheable(&self, why: &str) -> Result<()> {
        self.host.check(ask!(text self.host, pass.uncacheable(self.call; why)))
    }
    /// One line for whoever compiles.
    pub fn note(&self, text: &str) -> Result<()> {
        self.host.check(ask!(text self.host, pass.note(self.call; text)))
    }
    pub fn warn(&self, text: &str) -> Result<()> {
        self.host.check(ask!(text self.host, pass.warn(self.call; text)))
    }
}

/// A place at which a pattern was found, inside the function of `Pattern::calling`: what it is, what takes its place, and
/// the graph that it is in.
pub struct Match(Rewriter);
is_also!(Match.0: Rewriter);
impl DerefMut for Match {
    fn deref_mut(&mut self) -> &mut Rewriter {
        &mut self.0
    }
}
impl Edit for Match {
    fn place(&self) -> (Host, Handle, Handle) {
        self.0.place()
    }
}
impl Match {
    /// What a capture or a node of the pattern is. Value(0): an optional one that is not there.
    pub fn matched(&self, name: &str) -> Result<Value> {
        self.host.told(Value(0), |out| ask!(text self.host, pass.match_value(self.call; name, out)))
    }
    /// The number of a capture with "number".
    pub fn matched_number(&self, name: &str) -> Result<f64> {
        self.host.told(0.0, |out| ask!(text self.host, pass.match_number(self.call; name, out)))
    }
    /// What takes the place of the pattern's outputs, once the function has returned.
    pub fn replace_match(&mut self, values: &[Value]) -> Result<()> {
        self.host.check(ask!(self.host, pass.match_replace(self.call, values.as_ptr(), values.len() as u64)))
    }
}
