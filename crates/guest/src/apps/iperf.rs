//! A bulk stream in either direction.

use super::kind::{AppDefault, AppKind, AppParam, AppParamKind};
use super::parts::KILOBYTE_CPU;
use super::stream::{CALL_CPU, STREAM, STREAMS, TO, receiver, sender};

const SEND: i64 = 0;

pub const KIND: AppKind = AppKind {
    name: "iperf",
    doc: "Sends or receives as much as it can over TCP. Its units are buffers.",
    params: &[
        AppParam {
            name: "direction",
            doc: "Does it send, or does it receive what others send to it?",
            kind: AppParamKind::Choice(&["send", "receive"]),
            default: AppDefault::Value(SEND),
            source: "iperf: the client sends",
        },
        TO,
        AppParam::size(
            "buffer_size",
            "Bytes that it sends or takes at a time.",
            1,
            8192,
            "iperf manual of those years: 8 KB for TCP (128 KB in later releases of iperf 2)",
        ),
        CALL_CPU,
        KILOBYTE_CPU,
        STREAMS,
    ],
    classes: &[STREAM],
    build: |args| {
        let (bytes, cpu) = (args.get("buffer_size"), args.span("call_cpu"));
        if args.get("direction") == SEND {
            sender(args, bytes, cpu, false)
        } else {
            receiver(args, bytes, cpu)
        }
    },
};
