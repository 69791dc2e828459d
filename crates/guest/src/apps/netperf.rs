//! A bulk stream of messages.

use super::kind::{AppKind, AppParam};
use super::parts::KILOBYTE_CPU;
use super::stream::{CALL_CPU, STREAMS, TO, sender};
use crate::script::AppConfig;

pub const KIND: AppKind = AppKind {
    name: "netperf",
    doc: "Sends messages over TCP, one after the other. Its units are messages.",
    params: &[
        TO,
        AppParam::size(
            "message_size",
            "Size of a message.",
            1,
            16_384,
            "netperf's TCP_STREAM: as large as the socket's send buffer, 16384 B on Linux (tcp_wmem)",
        ),
        AppParam::size(
            "send_buffer",
            "Data that its socket keeps at most until they are acknowledged.",
            1,
            65_536,
            "Linux: 16 KB (tcp_wmem), grown to 64 KB and more unless the program sets it",
        ),
        CALL_CPU,
        KILOBYTE_CPU,
        STREAMS,
    ],
    classes: &[],
    build: |args| {
        let send_buffer = Some(args.get_u32("send_buffer"));
        AppConfig { send_buffer, ..sender(args, args.get("message_size"), args.span("call_cpu"), false) }
    },
};
