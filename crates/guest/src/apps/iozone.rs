//! Four operations of a file system benchmark.

use super::file_access::{CALL_CPU, RUNS, direct, pieces};
use super::kind::{AppDefault, AppKind, AppParam, AppParamKind, MEMORY_MAX};
use super::parts::{KILOBYTE_CPU, READ};
use crate::script::DiskAccess;

pub const KIND: AppKind = AppKind {
    name: "iozone",
    doc: "Reads or writes a file record by record, in sequence or at random. Its units are records.",
    params: &[
        AppParam {
            name: "operation",
            doc: "What it does with each record.",
            kind: AppParamKind::Choice(&["write", "read", "random-write", "random-read"]),
            default: AppDefault::Value(0),
            source: "iozone: the first of its tests is a sequential write",
        },
        AppParam {
            name: "file_size",
            doc: "Size of the file. A last piece that is less than a record is left out.",
            kind: AppParamKind::Size { min: 1, max: MEMORY_MAX },
            default: AppDefault::Value(512 << 20),
            source: "Venkatesh 2015, Table 3: 512 MB",
        },
        AppParam::size(
            "record_size",
            "Size of a record; one that is larger than the file counts as the file.",
            1,
            1 << 20,
            "Venkatesh 2015, Table 3: 1 MB",
        ),
        direct(1, "Venkatesh 2015, Table 3: direct I/O"),
        RUNS,
        CALL_CPU,
        KILOBYTE_CPU,
    ],
    classes: &[],
    build: |args| {
        let (file, operation) = (args.get("file_size"), args.get("operation"));
        let record = args.get("record_size").min(file);
        let access =
            DiskAccess { bytes: record as u32, write: operation % 2 == 0, random: operation >= 2, ..READ };
        // More records than a counter holds would be more than anyone waits for.
        pieces(args, access, (file / record).min(u32::MAX.into()))
    },
};
