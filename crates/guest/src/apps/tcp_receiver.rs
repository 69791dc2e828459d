//! The receiver of a pair that moves packets of one size.

use super::kind::AppKind;
use super::parts::KILOBYTE_CPU;
use super::stream::{CALL_CPU, STREAM, STREAMS, receiver};
use super::tcp_sender::{DELAY, PACKET_SIZE};

pub const KIND: AppKind = AppKind {
    name: "tcp-receiver",
    doc: "Receives packets of one size over TCP, slowed by an empty loop. Its units are packets.",
    params: &[PACKET_SIZE, DELAY, CALL_CPU, KILOBYTE_CPU, STREAMS],
    classes: &[STREAM],
    build: |args| receiver(args, args.get("packet_size"), args.span("call_cpu") + args.span("delay")),
};
