//! The page on result tables, from the types of their rows.

use std::fmt::Write as _;

use vcpulab_measure::EventRow;
use vcpulab_run::for_each_table;

use crate::table;

/// A table's name, documentation and columns.
type Table = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident: $row:ty,)*) => {
        /// The result tables of a run.
        const TABLES: &[Table] = &[$((<$row>::TABLE, <$row>::DOC, <$row>::COLUMNS)),*];
    };
}

for_each_table!(tables);

pub fn page() -> String {
    let mut page = String::from(
        "# Results\n\n\
         Generated from the row types. Every run leaves these tables, one row for each replication and thing. Times are \
         simulated; what is measured begins after the warm-up.\n",
    );
    let events = (EventRow::TABLE, EventRow::DOC, EventRow::COLUMNS);
    for (name, doc, columns) in TABLES.iter().chain([&events]) {
        write!(page, "\n## `{name}`\n\n{}\n\n", doc.trim()).expect("a string takes all text");
        let rows = columns.iter().map(|(column, doc)| [format!("`{column}`"), doc.trim().to_owned()]);
        page += &table(["column", "what it is"], rows);
    }
    page
}
