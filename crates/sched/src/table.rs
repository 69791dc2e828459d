//! Tables indexed by ids. A scheduler of a CPU pool is told of the pool's own pCPUs, domains and vCPUs only, so a table may
//! have gaps; they hold copies that nobody looks at.

/// Puts a value at an index, and makes room for it.
pub fn put<T: Clone>(table: &mut Vec<T>, index: usize, value: T) {
    if index >= table.len() {
        table.resize(index + 1, value);
    } else {
        table[index] = value;
    }
}
