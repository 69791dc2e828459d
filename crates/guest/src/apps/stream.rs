//! Common parts of programs that move bytes over a connection.

use vcpulab_host::Span;

use super::kind::{AppDefault, AppParam, AppParamKind, Args, RequestClass};
use super::parts::{copying, script, work};
use crate::script::{AppConfig, Peer, ServiceConfig, Step};

pub const TO: AppParam = AppParam {
    name: "to",
    doc: "The service that it sends to; none: a machine outside that takes everything.",
    kind: AppParamKind::Service(&["tcp-receiver", "iperf"]),
    default: AppDefault::Absent,
    source: "the studies send to client machines",
};

pub const STREAMS: AppParam = AppParam::count(
    "streams",
    "How many connections, with a task for each.",
    (1, 4096),
    1,
    "one connection is the usual test",
);

pub const CALL_CPU: AppParam = AppParam::cpu(
    "call_cpu",
    "CPU time of the system call for each piece, without the network's own work.",
    2,
    "assumption: entry, socket layer and exit take some two thousand cycles",
);

/// A stream from outside: the connection is the request, its caller sends without end, and gets no answer.
pub const STREAM: RequestClass = RequestClass {
    name: "stream",
    request_bytes: 0,
    reply_bytes: 0,
    weight: 1,
    source: "a stream has neither requests nor answers",
};

/// Sends pieces of `bytes`, each after `cpu` of CPU time and that of copying it. Pushed, each travels by itself.
pub fn sender(args: &Args<'_>, bytes: i64, cpu: Span, push: bool) -> AppConfig {
    let peer = args.optional_service("to").map_or(Peer::Outside, Peer::Service);
    let send = Step::Send { bytes: bytes as u32, push };
    let piece = [Step::Connect(peer), work(cpu + copy(args, bytes)), send, Step::Done];
    AppConfig { tasks: args.get_u32("streams"), ..AppConfig::new(script(args, piece.into())) }
}

/// Receives pieces of `bytes`, each with `cpu` of CPU time and that of copying it.
pub fn receiver(args: &Args<'_>, bytes: i64, cpu: Span) -> AppConfig {
    let piece = [Step::Receive(bytes as u32), work(cpu + copy(args, bytes)), Step::Done];
    let mut script = script(args, [&[Step::Await], &piece[..]].concat());
    script.classes.push(1);
    // The connection lasts.
    script.repeat(1, u32::MAX);
    let streams = args.get_u32("streams");
    let service = Some(ServiceConfig::of(streams));
    AppConfig { tasks: streams, service, ..AppConfig::new(script) }
}

fn copy(args: &Args<'_>, bytes: i64) -> Span {
    copying(args.span("kilobyte_cpu"), bytes)
}
