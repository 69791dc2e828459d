//! A database server.

use super::kind::{AppDefault, AppKind, AppParam, AppParamKind, MEMORY_MAX, RequestClass};
use super::parts::{misses, perhaps, random_read, service, work};
use crate::script::ServiceConfig;

/// A block of a MyISAM index, and what a read of a row brings along, bytes.
const BLOCK: u32 = 4096;

/// Assumption: the parts of the server that each query needs, and a connection's buffers, bytes.
const PROGRAM_MEMORY: u64 = 512 << 10;
const CONNECTION_MEMORY: u64 = 64 << 10;

pub const KIND: AppKind = AppKind {
    name: "mysql",
    doc: "A database server that answers queries for single rows, with a thread for each connection. Its units are queries.",
    params: &[
        AppParam::count(
            "connections_max",
            "Most connections at once, each with a thread; what comes on top is refused.",
            (1, 4096),
            100,
            "MySQL 5.0 manual: max_connections is 100 unless told otherwise",
        ),
        AppParam::cpu(
            "login_cpu",
            "CPU time to accept a connection: a thread, and the login.",
            300,
            "assumption: creating a thread and checking a password take about as much as two queries",
        ),
        AppParam::cpu(
            "select_cpu",
            "CPU time of a query for one row by its key.",
            150,
            "assumption: some ten thousand such queries a second on a 2 GHz core, less what the network takes",
        ),
        AppParam::percent(
            "cached",
            "Share of queries that find their row in memory.",
            100,
            "assumption: tables of a few rows, as those of a small site",
        ),
        AppParam {
            name: "data_size",
            doc: "Size of the tables, over which those reads spread that go to the disk.",
            kind: AppParamKind::Size { min: 1, max: MEMORY_MAX },
            default: AppDefault::Value(1 << 30),
            source: "assumption: 1 GiB; only how far the disk's head moves depends on it",
        },
    ],
    classes: &[
        RequestClass {
            name: "query",
            request_bytes: 200,
            reply_bytes: 400,
            weight: 0,
            source: "MySQL client/server protocol: login packet and a SELECT; the greeting, an OK and one row",
        },
        RequestClass {
            name: "select",
            request_bytes: 120,
            reply_bytes: 300,
            weight: 1,
            source: "MySQL client/server protocol: a SELECT; column definitions and one row",
        },
    ],
    build: |args| {
        let disk = perhaps(misses(args.get("cached")), &[random_read(BLOCK, args.get("data_size"))]);
        let select = [vec![work(args.span("select_cpu"))], disk].concat();
        let query = [vec![work(args.span("login_cpu"))], select.clone()].concat();
        let threads = args.get_u32("connections_max");
        let config = ServiceConfig::of(threads);
        crate::AppConfig {
            shared_bytes: PROGRAM_MEMORY,
            private_bytes: CONNECTION_MEMORY,
            ..service(args, threads, config, &[query, select])
        }
    },
};
