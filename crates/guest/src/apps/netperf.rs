//! A bulk stream of messages.

use super::stream::{CALL_CPU, STREAMS, TO, sender};
use super::{AppKind, AppParam, KILOBYTE_CPU};

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
        CALL_CPU,
        KILOBYTE_CPU,
        STREAMS,
    ],
    classes: &[],
    build: |args| sender(args, args.get("message_size"), args.get("call_cpu"), false),
};
