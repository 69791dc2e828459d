//! Names in short, by `vcpulab_judge::names`.

use pyo3::prelude::*;
use vcpulab_judge::names;

/// The name with a `#` for its number.
#[pyfunction]
pub fn without_number(name: &str) -> String {
    names::without_number(name)
}

/// Rows of numbered names; each other name by itself.
#[pyfunction]
pub fn name_rows(names: Vec<String>) -> Vec<Vec<String>> {
    let rows = names::rows(names.iter().map(String::as_str));
    rows.into_iter().map(|row| row.into_iter().map(str::to_owned).collect()).collect()
}

/// Names as a list, rows of numbered ones by their ends.
#[pyfunction]
pub fn names_listed(names: Vec<String>) -> Vec<String> {
    names::rows(names.iter().map(String::as_str)).iter().map(|row| names::ends(row)).collect()
}

/// Names in a few words.
#[pyfunction]
pub fn names_in_short(names: Vec<String>) -> String {
    names::in_short(names.iter().map(String::as_str))
}
