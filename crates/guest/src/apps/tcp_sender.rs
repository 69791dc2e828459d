//! The sender of a pair that moves packets of one size.

use vcpulab_host::Span;

use super::kind::{AppDefault, AppKind, AppParam, AppParamKind, SPAN_MAX};
use super::parts::KILOBYTE_CPU;
use super::stream::{CALL_CPU, STREAMS, TO, sender};

pub const PACKET_SIZE: AppParam = AppParam::size(
    "packet_size",
    "Payload of each packet.",
    1,
    1448,
    "Benevenuto 2006, section 5.2.2: 500, 1000 and 1448 B, the most that a frame holds",
);

pub const DELAY: AppParam = AppParam {
    name: "delay",
    doc: "CPU time of an empty loop after each packet, which sets the rate.",
    kind: AppParamKind::Duration { min: Span::ZERO, max: SPAN_MAX },
    default: AppDefault::Value(0),
    source: "none: as fast as it can",
};

pub const KIND: AppKind = AppKind {
    name: "tcp-sender",
    doc: "Sends packets of one size over TCP, slowed by an empty loop. Its units are packets.",
    params: &[TO, PACKET_SIZE, DELAY, CALL_CPU, KILOBYTE_CPU, STREAMS],
    classes: &[],
    build: |args| sender(args, args.get("packet_size"), args.span("call_cpu") + args.span("delay"), true),
};
