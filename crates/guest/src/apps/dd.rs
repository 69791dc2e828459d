//! Copying blocks.

use super::file_access::{CALL_CPU, RUNS, direct, pieces};
use super::kind::{AppDefault, AppKind, AppParam, AppParamKind};
use super::parts::{KILOBYTE_CPU, READ};
use crate::script::DiskAccess;

pub const KIND: AppKind = AppKind {
    name: "dd",
    doc: "Reads or writes the blocks of a file one after the other. Its units are blocks.",
    params: &[
        AppParam {
            name: "operation",
            doc: "Does it read or write the file?",
            kind: AppParamKind::Choice(&["read", "write"]),
            default: AppDefault::Value(0),
            source: "Cherkasova, Gupta and Vahdat 2007, section 5: a read",
        },
        AppParam::size(
            "block_size",
            "Size of a block.",
            1,
            1024,
            "Cherkasova, Gupta and Vahdat 2007, section 5: 1 KB",
        ),
        AppParam::count(
            "count",
            "How many blocks the file has.",
            (1, 1 << 24),
            1000,
            "Cherkasova, Gupta and Vahdat 2007, section 5: 1000 blocks",
        ),
        direct(0, "dd: through the page cache unless told otherwise"),
        RUNS,
        CALL_CPU,
        KILOBYTE_CPU,
    ],
    classes: &[],
    build: |args| {
        let access =
            DiskAccess { bytes: args.get_u32("block_size"), write: args.get("operation") == 1, ..READ };
        pieces(args, access, args.get("count"))
    },
};
