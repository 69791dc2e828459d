//! The applications by name: what each is, its parameters, and the script that it comes to. A new one is one file here
//! and one line in [`KINDS`].

mod active_directory;
mod cpu_stress;
mod dd;
mod exchange;
mod file_access;
mod hog;
mod iozone;
mod iperf;
mod kernel_build;
mod moss;
mod mssql;
mod mysql;
mod netperf;
mod nfs;
mod oltp;
mod periodic;
mod php_web;
pub mod specweb99;
mod spin;
mod stream;
mod tcp_receiver;
mod tcp_sender;
#[cfg(test)]
mod tests;
mod web_server;

use vcpulab_host::Span;

use crate::script::{AppConfig, Call, DiskAccess, Script, ServiceConfig, Step};

/// All kinds, in the order of the documentation.
pub const KINDS: &[&AppKind] = &[
    &hog::KIND,
    &cpu_stress::KIND,
    &periodic::KIND,
    &spin::KIND,
    &kernel_build::KIND,
    &tcp_sender::KIND,
    &tcp_receiver::KIND,
    &iperf::KIND,
    &netperf::KIND,
    &dd::KIND,
    &iozone::KIND,
    &oltp::KIND,
    &web_server::KIND,
    &php_web::KIND,
    &mysql::KIND,
    &nfs::KIND,
    &active_directory::KIND,
    &exchange::KIND,
    &moss::KIND,
    &mssql::KIND,
];

/// A kind of application.
#[derive(Debug)]
pub struct AppKind {
    /// Its name in a scenario.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// Its parameters.
    pub params: &'static [AppParam],
    /// The classes of requests that it answers; none: it is no service.
    pub classes: &'static [RequestClass],
    /// The application with these values of the parameters: one for each, in order.
    pub build: fn(&Args<'_>) -> AppConfig,
}

/// A class of requests that a service answers.
#[derive(Clone, Copy, Debug)]
pub struct RequestClass {
    /// Its name in a scenario.
    pub name: &'static str,
    /// Size of a request, bytes.
    pub request_bytes: u32,
    /// Size of an answer, bytes, unless the client asks for another.
    pub reply_bytes: u32,
    /// How often clients ask for it, in relation to the other classes, unless they are told otherwise.
    pub weight: u32,
    /// Where these figures are from.
    pub source: &'static str,
}

/// A parameter of an application.
#[derive(Debug)]
pub struct AppParam {
    /// Its name in a scenario.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// What values it can have.
    pub kind: ParamKind,
    /// Its value where a scenario gives none.
    pub default: Default,
    /// Where the default is from, or why it is what it is.
    pub source: &'static str,
}

/// What values a parameter can have. All come to integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum ParamKind {
    /// A time span, ns.
    Duration { min: Span, max: Span },
    /// A size, bytes.
    Size { min: i64, max: i64 },
    /// A number of things.
    Count { min: i64, max: i64 },
    /// A share, percent.
    Percent,
    /// One of these words, as its position.
    Choice(&'static [&'static str]),
    /// Yes or no, as 1 or 0.
    Flag,
    /// A service: an application of one of these kinds in the domain named, as its number in the machine.
    Service(&'static [&'static str]),
}

/// A parameter's value where none is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Default {
    /// It must be given.
    Required,
    /// This.
    Value(i64),
    /// The CPU time of so many thousand cycles on the scenario's machine, ns.
    Kilocycles(i64),
    /// The constant of the hardware profile of this name.
    Profile(&'static str),
    /// It is left out: the value is −1.
    Absent,
}

/// The values of an application's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    /// Its kind.
    pub kind: &'a AppKind,
    /// One value for each of its parameters, in order.
    pub values: &'a [i64],
    /// How far computations vary, percent to both sides.
    pub spread_percent: i64,
}

impl Args<'_> {
    /// The value of a parameter.
    ///
    /// # Panics
    /// If the kind has no such parameter.
    pub fn get(&self, name: &str) -> i64 {
        let position = self.kind.params.iter().position(|param| param.name == name);
        self.values[position.expect("an application asks for its own parameters only")]
    }

    /// The value of a parameter that was checked to fit.
    ///
    /// # Panics
    /// If the kind has no such parameter.
    pub fn get_u32(&self, name: &str) -> u32 {
        self.get(name).clamp(0, u32::MAX.into()) as u32
    }
}

/// The kind of that name.
pub fn find(name: &str) -> Option<&'static AppKind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}

// ---- what several applications say about their parameters ----

impl AppParam {
    /// A CPU time that scales with the machine's clock.
    const fn cpu(name: &'static str, doc: &'static str, kilocycles: i64, source: &'static str) -> Self {
        let kind = ParamKind::Duration { min: 0, max: SPAN_MAX };
        AppParam { name, doc, kind, default: Default::Kilocycles(kilocycles), source }
    }

    /// A size from `min` on, bytes.
    const fn size(
        name: &'static str,
        doc: &'static str,
        min: i64,
        default: i64,
        source: &'static str,
    ) -> Self {
        let kind = ParamKind::Size { min, max: if min > 0 { SIZE_MAX } else { MEMORY_MAX } };
        AppParam { name, doc, kind, default: Default::Value(default), source }
    }

    /// A number of things from `min` to `max`.
    const fn count(
        name: &'static str,
        doc: &'static str,
        (min, max): (i64, i64),
        default: i64,
        source: &'static str,
    ) -> Self {
        AppParam { name, doc, kind: ParamKind::Count { min, max }, default: Default::Value(default), source }
    }

    /// A share, percent.
    const fn percent(name: &'static str, doc: &'static str, default: i64, source: &'static str) -> Self {
        AppParam { name, doc, kind: ParamKind::Percent, default: Default::Value(default), source }
    }
}

/// CPU time that grows with the bytes copied. Bounded so that no product with a size overflows.
const KILOBYTE_CPU: AppParam = AppParam {
    name: "kilobyte_cpu",
    doc: "CPU time for each KiB that it copies between itself and the kernel.",
    kind: ParamKind::Duration { min: 0, max: 1_000_000 },
    default: Default::Kilocycles(1),
    source: "assumption: one copy at a byte a cycle, as where the data come from memory",
};

/// Half-open connections of a server.
const SYN_QUEUE: AppParam = AppParam::count(
    "syn_queue",
    "Connections whose set-up is under way at once; a call on top is lost, and made again later.",
    (1, 1_000_000),
    ServiceConfig::SYN_QUEUE as i64,
    "tcp(7): tcp_max_syn_backlog is 1024 with 128 MB of memory or more",
);

/// CPU time of so many bytes, ns, at so much for each KiB.
const fn copying(kilobyte_ns: Span, bytes: i64) -> Span {
    kilobyte_ns * bytes / 1024
}

// ---- what several applications do ----

/// A step that computes for so long, ns.
const fn compute(ns: Span) -> Step {
    Step::Compute { ns, per_byte_ps: 0 }
}

/// The same, but some time at least: a script that goes round in no time would never let anything else happen.
const fn work(ns: Span) -> Step {
    work_and_copy(ns, 0)
}

/// A step that computes for so long, ns, and copies what the request asks for at so much for each KiB.
const fn work_and_copy(ns: Span, kilobyte_ns: Span) -> Step {
    Step::Compute { ns: if ns > 0 { ns } else { 1 }, per_byte_ps: kilobyte_ns * 1000 / 1024 }
}

/// These steps, in so many of a million cases.
fn perhaps(ppm: i64, steps: &[Step]) -> Vec<Step> {
    if ppm <= 0 {
        return Vec::new();
    }
    let chance = Step::Chance { ppm: ppm.min(1_000_000) as u32, skip: steps.len() as u32 };
    [&[chance], steps].concat()
}

/// The cases out of a million in which a cache that hits in so many percent does not.
const fn misses(hit_percent: i64) -> i64 {
    (100 - hit_percent) * 10_000
}

/// An access to a disk to start from: a sequential read through the page cache.
const READ: DiskAccess = DiskAccess { bytes: 0, write: false, random: false, direct: false, file_bytes: 0 };

/// A read of so many bytes at a random place in a file of that size.
fn random_read(bytes: u32, file_bytes: i64) -> Step {
    let file_bytes = (file_bytes as u64).max(bytes.into());
    Step::Disk(DiskAccess { bytes, random: true, file_bytes, ..READ })
}

/// A script whose computations vary as the scenario says.
fn script(args: &Args<'_>, steps: Vec<Step>) -> Script {
    Script { spread_percent: args.spread_percent, ..Script::new(steps) }
}

/// The application that answers requests: by class, what it does before it answers.
fn service(args: &Args<'_>, workers: u32, config: ServiceConfig, classes: &[Vec<Step>]) -> AppConfig {
    let mut script = script(args, vec![Step::Await]);
    for steps in classes {
        script.classes.push(script.steps.len() as u32);
        script.steps.extend(steps);
        script.steps.extend([Step::Reply(None), Step::Done, Step::Restart]);
    }
    AppConfig { tasks: workers, service: Some(config), ..AppConfig::new(script) }
}

/// A request of that class to a service of that kind, over a connection that is kept.
///
/// # Panics
/// If the kind has no such class.
fn request(kind: &AppKind, class: &str, service: i64) -> Call {
    let position = kind.classes.iter().position(|known| known.name == class);
    let position = position.expect("an application asks for classes that there are only");
    let RequestClass { request_bytes: request, reply_bytes: reply, .. } = kind.classes[position];
    Call { service: service as u32, class: position as u32, request, reply, connects: false }
}

/// Longest time span that a parameter may be, ns: a day.
const SPAN_MAX: Span = 86_400_000_000_000;

/// Largest piece of data that a parameter may ask to move at once, bytes.
const SIZE_MAX: i64 = 1 << 30;

/// Largest file or memory, bytes.
const MEMORY_MAX: i64 = 1 << 44;
