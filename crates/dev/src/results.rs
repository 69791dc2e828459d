//! The page on result tables, from the types of their rows.

use std::fmt::Write as _;

use vcpulab_measure::{
    AppRow, AppSampleRow, DomainRow, EventRow, IoRow, PcpuRow, PcpuSampleRow, ProfileRow, SampleRow,
    TraceRow, VcpuRow, VcpuSampleRow, WaitRow, WakeUpBucketRow, WakeUpRow,
};

use crate::markdown::table;

pub fn page() -> String {
    let mut page = String::from(
        "# Results\n\n\
         Generated from the row types. Every run leaves these tables, one row for each replication and thing. Times are \
         simulated; what is measured begins after the warm-up.\n",
    );
    let tables = [
        (DomainRow::TABLE, DomainRow::DOC, DomainRow::COLUMNS),
        (VcpuRow::TABLE, VcpuRow::DOC, VcpuRow::COLUMNS),
        (PcpuRow::TABLE, PcpuRow::DOC, PcpuRow::COLUMNS),
        (AppRow::TABLE, AppRow::DOC, AppRow::COLUMNS),
        (IoRow::TABLE, IoRow::DOC, IoRow::COLUMNS),
        (WaitRow::TABLE, WaitRow::DOC, WaitRow::COLUMNS),
        (WakeUpRow::TABLE, WakeUpRow::DOC, WakeUpRow::COLUMNS),
        (WakeUpBucketRow::TABLE, WakeUpBucketRow::DOC, WakeUpBucketRow::COLUMNS),
        (SampleRow::TABLE, SampleRow::DOC, SampleRow::COLUMNS),
        (VcpuSampleRow::TABLE, VcpuSampleRow::DOC, VcpuSampleRow::COLUMNS),
        (AppSampleRow::TABLE, AppSampleRow::DOC, AppSampleRow::COLUMNS),
        (PcpuSampleRow::TABLE, PcpuSampleRow::DOC, PcpuSampleRow::COLUMNS),
        (ProfileRow::TABLE, ProfileRow::DOC, ProfileRow::COLUMNS),
        (TraceRow::TABLE, TraceRow::DOC, TraceRow::COLUMNS),
        (EventRow::TABLE, EventRow::DOC, EventRow::COLUMNS),
    ];
    for (name, doc, columns) in tables {
        write!(page, "\n## `{name}`\n\n{}\n\n", doc.trim()).expect("a string takes all text");
        let rows = columns.iter().map(|(column, doc)| [format!("`{column}`"), doc.trim().to_owned()]);
        page += &table(["column", "what it is"], rows);
    }
    page
}
