//! Tables of a scheduler. That of a CPU pool gets its own pCPUs, domains and vCPUs only, so a table may have gaps; they
//! hold copies that are never read.

use vcpulab_host::{Id, Table};

/// Puts an entry into a table, and makes room for it.
pub fn put<I: Id, T: Clone>(table: &mut Table<I, T>, id: I, entry: T) {
    if id.index() >= table.len() {
        table.resize(id.index() + 1, entry);
    } else {
        table[id] = entry;
    }
}
