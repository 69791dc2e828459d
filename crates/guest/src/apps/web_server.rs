//! A static web server.

use vcpulab_host::Span;

use super::kind::{AppDefault, AppKind, AppParam, AppParamKind, MEMORY_MAX, RequestClass, SPAN_MAX};
use super::parts::{KILOBYTE_CPU, SYN_QUEUE, service, work_and_copy};
use crate::script::{AppConfig, FilesConfig, ServiceConfig, Step};

/// Most files of each size.
const FILES_PER_SIZE_MAX: i64 = 10_000;

pub const KIND: AppKind = AppKind {
    name: "web-server",
    doc: "Serves files over HTTP, out of memory unless `files_per_size` is given. Its units are requests.",
    params: &[
        AppParam {
            name: "request_cpu",
            doc: "CPU time of the server itself for each request.",
            kind: AppParamKind::Duration { min: Span::ZERO, max: SPAN_MAX },
            default: AppDefault::Profile("http_request_ns"),
            source: "the hardware profile's constant",
        },
        KILOBYTE_CPU,
        AppParam {
            name: "workers",
            doc: "How many requests it works at at once.",
            kind: AppParamKind::Int { min: 1, max: 4096 },
            default: AppDefault::Value(1),
            source: "one: an event loop; requests on one vCPU gain nothing from more",
        },
        AppParam {
            name: "connections_max",
            doc: "Most connections that it has at once.",
            kind: AppParamKind::Int { min: 1, max: 1_000_000 },
            default: AppDefault::Value(256),
            source: "Apache 2.0: MaxClients of the prefork module is 256 unless set",
        },
        AppParam {
            name: "backlog",
            doc: "Further connections that wait until one of those ends; what comes on top is refused.",
            kind: AppParamKind::Int { min: 0, max: 1_000_000 },
            default: AppDefault::Value(0),
            source: "none: with as many connections as clients hold, a backlog never fills",
        },
        SYN_QUEUE,
        AppParam::count(
            "requests_max",
            "Requests after which it closes a connection; 0: never.",
            (0, 1_000_000_000),
            0,
            "none: a server of files that leaves it to its clients",
        ),
        AppParam::count(
            "files_per_size",
            "How many files it has of each size that clients ask for; which of them is a matter of chance. Those asked for last are in memory, as many as there is room for in the domain's `memory`; others are read from its disk. 0: all are in memory.",
            (0, FILES_PER_SIZE_MAX),
            0,
            "all in memory: a site that is small beside its server's memory",
        ),
        AppParam {
            name: "process_memory",
            doc: "Memory that the process of each connection has for itself; files have that much less. Only with `files_per_size`.",
            kind: AppParamKind::Size { min: 0, max: MEMORY_MAX },
            default: AppDefault::Value(1 << 20),
            source: "Apache's processes take about a megabyte each (Professional LAMP, Wrox, section 9.4); with interpreters in them it is several times that",
        },
        AppParam {
            name: "system_memory",
            doc: "Memory of the domain's kernel and of its other programs, which files do not have either. Only with `files_per_size`.",
            kind: AppParamKind::Size { min: 0, max: MEMORY_MAX },
            default: AppDefault::Value(24 << 20),
            source: "assumption: a Linux 2.6 without a desktop takes 16 to 32 MB: kernel, page descriptors, slabs, and a dozen daemons",
        },
    ],
    classes: &[RequestClass {
        name: "get",
        request_bytes: 300,
        reply_bytes: 10_000,
        weight: 1,
        source: "a GET with its usual header lines; a page of 10 KB",
    }],
    build: |args| {
        let request = work_and_copy(args.span("request_cpu"), args.span("kilobyte_cpu"));
        let files = (args.get("files_per_size") > 0).then(|| {
            Box::new(FilesConfig {
                per_size: args.get_u32("files_per_size"),
                process_bytes: args.get("process_memory") as u64,
                system_bytes: args.get("system_memory") as u64,
            })
        });
        let steps = files.as_ref().map(|_| Step::ReadAsked).into_iter().chain([request]).collect();
        let config = ServiceConfig {
            backlog: args.get_u32("backlog"),
            syn_queue: args.get_u32("syn_queue"),
            requests_max: args.get_u32("requests_max"),
            ..ServiceConfig::of(args.get_u32("connections_max"))
        };
        AppConfig { files, ..service(args, args.get_u32("workers"), config, &[steps]) }
    },
};
