//! The database server of a Windows domain.

use super::kind::{AppDefault, AppKind, AppParam, AppParamKind, MEMORY_MAX, RequestClass};
use super::parts::{READ, misses, perhaps, random_read, service, work};
use crate::script::{AppConfig, DiskAccess, ServiceConfig, Step};

/// A page of SQL Server, bytes.
const PAGE: u32 = 8192;

/// Size of a document, bytes.
const DOCUMENT: u32 = 102_400;

/// Size of a row in the log, bytes.
const ROW_LOG: u32 = 4096;

/// Assumption: the parts of the server that each query needs, and a worker's own memory, bytes.
const PROGRAM_MEMORY: u64 = 1 << 20;
const WORKER_MEMORY: u64 = 128 << 10;

pub const KIND: AppKind = AppKind {
    name: "mssql",
    doc: "A database server that stores rows and documents, with a log that is on the disk before it answers. Its units are requests.",
    params: &[
        AppParam::count(
            "workers",
            "How many requests it works at at once.",
            (1, 4096),
            255,
            "SQL Server 2000 manual: max worker threads is 255 unless told otherwise (2005: 256 on up to four 32-bit processors)",
        ),
        AppParam::cpu(
            "read_cpu",
            "CPU time of a query.",
            600,
            "assumption: a stored procedure that joins a few tables, as much as a few short statements",
        ),
        AppParam::cpu(
            "write_cpu",
            "CPU time of a change of rows.",
            1000,
            "assumption: a query, with the log and the indexes on top",
        ),
        AppParam::cpu(
            "store_cpu",
            "CPU time to store a document of 100 KB.",
            2000,
            "assumption: a change of rows, and the document copied some ten times at a byte a cycle",
        ),
        AppParam::percent(
            "cached",
            "Share of queries that find their pages in memory.",
            98,
            "assumption: content databases are larger than memory, but few pages are popular",
        ),
        AppParam {
            name: "data_size",
            doc: "Size of the database, over which those reads spread that go to the disk.",
            kind: AppParamKind::Size { min: 1, max: MEMORY_MAX },
            default: AppDefault::Value(4 << 30),
            source: "assumption: a few times the memory of its domain",
        },
    ],
    classes: &[
        RequestClass {
            name: "read",
            request_bytes: 500,
            reply_bytes: 4000,
            weight: 8,
            source: "assumption: a procedure call; a few rows",
        },
        RequestClass {
            name: "write",
            request_bytes: 1000,
            reply_bytes: 200,
            weight: 1,
            source: "assumption: a procedure call with a row; its status",
        },
        RequestClass {
            name: "store",
            request_bytes: DOCUMENT,
            reply_bytes: 200,
            weight: 1,
            source: "assumption: a small document of 100 KB",
        },
    ],
    build: |args| {
        let size = args.get("data_size");
        let page = perhaps(misses(args.get("cached")), &[random_read(PAGE, size)]);
        // Its log is written through: who waits for the write waits for the disk.
        let log =
            |bytes| Step::Disk(DiskAccess { bytes, write: true, direct: true, file_bytes: 1 << 30, ..READ });
        let class = |cpu, last: &[Step]| [vec![work(args.span(cpu))], page.clone(), last.to_vec()].concat();
        let classes = [
            class("read_cpu", &[]),
            class("write_cpu", &[log(ROW_LOG)]),
            class("store_cpu", &[log(DOCUMENT)]),
        ];
        let config = ServiceConfig::of(32_767);
        AppConfig {
            shared_bytes: PROGRAM_MEMORY,
            private_bytes: WORKER_MEMORY,
            ..service(args, args.get_u32("workers"), config, &classes)
        }
    },
};
