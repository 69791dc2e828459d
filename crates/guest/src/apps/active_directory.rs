//! The directory of a Windows domain.

use super::kind::{AppDefault, AppKind, AppParam, AppParamKind, MEMORY_MAX, RequestClass};
use super::parts::{misses, perhaps, random_read, service, work};
use crate::script::ServiceConfig;

/// A page of its database (the Extensible Storage Engine's of that time), bytes.
const PAGE: u32 = 8192;

pub const KIND: AppKind = AppKind {
    name: "active-directory",
    doc: "A directory that authenticates users and answers searches. Its units are requests.",
    params: &[
        AppParam::count(
            "threads",
            "How many requests it works at at once.",
            (1, 1024),
            8,
            "assumption: four for each of two processors, as Windows' LDAP server allows",
        ),
        AppParam::cpu(
            "logon_cpu",
            "CPU time to check a password.",
            1000,
            "assumption: finding the account, cryptography, and gathering groups",
        ),
        AppParam::cpu(
            "lookup_cpu",
            "CPU time of a search for one entry.",
            300,
            "assumption: an indexed search and its encoding, about two database statements",
        ),
        AppParam::percent(
            "cached",
            "Share of requests that find their entries in memory.",
            99,
            "assumption: a directory of some thousand users fits its memory",
        ),
        AppParam {
            name: "database_size",
            doc: "Size of the directory, over which those reads spread that go to the disk.",
            kind: AppParamKind::Size { min: 1, max: MEMORY_MAX },
            default: AppDefault::Value(100 << 20),
            source: "assumption: some thousand users at some 10 KB each",
        },
    ],
    classes: &[
        RequestClass {
            name: "logon",
            request_bytes: 600,
            reply_bytes: 900,
            weight: 1,
            source: "assumption: a challenge and its answer with the user's groups",
        },
        RequestClass {
            name: "lookup",
            request_bytes: 300,
            reply_bytes: 1200,
            weight: 4,
            source: "assumption: a filter; an entry with a dozen attributes",
        },
    ],
    build: |args| {
        let disk = perhaps(misses(args.get("cached")), &[random_read(PAGE, args.get("database_size"))]);
        let class = |cpu| [vec![work(args.span(cpu))], disk.clone()].concat();
        let config = ServiceConfig::of(5000);
        service(args, args.get_u32("threads"), config, &[class("logon_cpu"), class("lookup_cpu")])
    },
};
