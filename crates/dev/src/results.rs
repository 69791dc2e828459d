//! The page on result tables, from the types of their rows.

use std::fmt::Write as _;

use vcpulab_measure::{EventRow, PathRow, Results};

use crate::markdown::table;

pub fn page() -> String {
    let mut page = String::from(
        "# Results\n\n\
         Generated from the row types. Every run leaves these tables, one row for each replication and thing. Times are \
         simulated; what is measured begins after the warm-up.\n",
    );
    for columns in Results::TABLES.iter().chain([&EventRow::COLUMNS, &PathRow::COLUMNS]) {
        write!(page, "\n## `{}`\n\n{}\n\n", columns.table, columns.doc.trim())
            .expect("a string takes all text");
        let rows = columns.columns.iter().map(|(column, doc)| [format!("`{column}`"), doc.trim().to_owned()]);
        page += &table(["column", "what it is"], rows);
    }
    page
}
