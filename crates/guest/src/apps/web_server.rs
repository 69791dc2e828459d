//! A static web server.

use super::{
    AppKind, AppParam, Default, KILOBYTE_CPU, ParamKind, RequestClass, SPAN_MAX, SYN_QUEUE, service,
    work_and_copy,
};
use crate::script::ServiceConfig;

pub const KIND: AppKind = AppKind {
    name: "web-server",
    doc: "Serves files over HTTP, out of memory. Its units are requests.",
    params: &[
        AppParam {
            name: "request_cpu",
            doc: "CPU time of the server itself for each request.",
            kind: ParamKind::Duration { min: 0, max: SPAN_MAX },
            default: Default::Profile("http_request_ns"),
            source: "the hardware profile's constant",
        },
        KILOBYTE_CPU,
        AppParam {
            name: "workers",
            doc: "How many requests it works at at once.",
            kind: ParamKind::Count { min: 1, max: 4096 },
            default: Default::Value(1),
            source: "one: an event loop; requests on one vCPU gain nothing from more",
        },
        AppParam {
            name: "connections_max",
            doc: "Most connections that it has at once.",
            kind: ParamKind::Count { min: 1, max: 1_000_000 },
            default: Default::Value(256),
            source: "Apache 2.0: MaxClients of the prefork module is 256 unless set",
        },
        AppParam {
            name: "backlog",
            doc: "Further connections that wait until one of those ends; what comes on top is refused.",
            kind: ParamKind::Count { min: 0, max: 1_000_000 },
            default: Default::Value(0),
            source: "none: with as many connections as clients hold, a backlog never fills",
        },
        SYN_QUEUE,
        AppParam::count(
            "requests_max",
            "It closes a connection after so many requests; 0: never.",
            (0, 1_000_000_000),
            0,
            "none: a server of files that leaves it to its clients",
        ),
    ],
    classes: &[RequestClass {
        name: "get",
        request_bytes: 300,
        reply_bytes: 10_000,
        weight: 1,
        source: "a GET with its usual header lines; a page of 10 KB",
    }],
    build: |args| {
        let request = work_and_copy(args.get("request_cpu"), args.get("kilobyte_cpu"));
        let config = ServiceConfig {
            backlog: args.get_u32("backlog"),
            syn_queue: args.get_u32("syn_queue"),
            requests_max: args.get_u32("requests_max"),
            ..ServiceConfig::of(args.get_u32("connections_max"))
        };
        service(args, args.get_u32("workers"), config, &[vec![request]])
    },
};
