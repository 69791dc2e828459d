//! A file server.

use super::kind::{AppDefault, AppKind, AppParam, AppParamKind, MEMORY_MAX, RequestClass};
use super::parts::{misses, perhaps, random_read, service, work};
use crate::script::ServiceConfig;

/// A read, bytes: a page, the least that a client's page cache asks for.
const READ_BYTES: u32 = 4096;

pub const KIND: AppKind = AppKind {
    name: "nfs",
    doc: "A file server. Its units are requests.",
    params: &[
        AppParam::count(
            "threads",
            "How many requests it works at at once.",
            (1, 1024),
            8,
            "RPCNFSDCOUNT of Linux distributions: 8 nfsd threads",
        ),
        AppParam::cpu(
            "call_cpu",
            "CPU time of a request, without the network's own work.",
            30,
            "assumption: decoding, lookup in memory and encoding in the kernel",
        ),
        AppParam::percent(
            "cached",
            "Share of reads that its page cache answers.",
            99,
            "assumption: a small site that fits its memory, read before",
        ),
        AppParam {
            name: "files_size",
            doc: "Size of all files, over which those reads spread that go to the disk.",
            kind: AppParamKind::Size { min: 1, max: MEMORY_MAX },
            default: AppDefault::Value(1 << 30),
            source: "assumption: 1 GiB; only how far the disk's head moves depends on it",
        },
    ],
    classes: &[
        RequestClass {
            name: "getattr",
            request_bytes: 140,
            reply_bytes: 112,
            weight: 1,
            source: "RFC 1813 and RFC 5531: a file handle with credentials; attributes of 84 B with headers",
        },
        RequestClass {
            name: "read",
            request_bytes: 160,
            reply_bytes: READ_BYTES + 132,
            weight: 1,
            source: "RFC 1813 and RFC 5531: a page with attributes and headers",
        },
    ],
    build: |args| {
        let call = work(args.span("call_cpu"));
        let disk = perhaps(misses(args.get("cached")), &[random_read(READ_BYTES, args.get("files_size"))]);
        let config = ServiceConfig::of(1024);
        service(args, args.get_u32("threads"), config, &[vec![call], [vec![call], disk].concat()])
    },
};
