//! Names in short: rows of numbered ones by their ends.

use std::collections::BTreeMap;

/// Most names or rows that are read at once.
const SHOWN_MAX: usize = 3;

/// A name with a number at its end, perhaps with that of an application: `batch10`, `batch10.0`.
struct Numbered<'a> {
    stem: &'a str,
    number: &'a str,
    rest: &'a str,
}

impl<'a> Numbered<'a> {
    fn of(name: &'a str) -> Option<Self> {
        let before_digits = |text: &'a str| text.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let (stem, number) = name.split_at(before_digits(name).len());
        if number.is_empty() {
            return None;
        }
        let within = stem.strip_suffix('.').unwrap_or_default();
        let (outer, outer_number) = within.split_at(before_digits(within).len());
        Some(match outer_number {
            "" => Numbered { stem, number, rest: "" },
            _ => Numbered { stem: outer, number: outer_number, rest: &name[within.len()..] },
        })
    }

    /// The number, where it is not too large.
    fn value(&self) -> u128 {
        self.number.parse().unwrap_or(u128::MAX)
    }
}

/// The name with a `#` for its number; equal for names that differ only in the number.
pub fn without_number(name: &str) -> String {
    Numbered::of(name).map_or_else(|| name.to_owned(), |Numbered { stem, rest, .. }| format!("{stem}#{rest}"))
}

fn value(name: &str) -> u128 {
    Numbered::of(name).map_or(0, |numbered| numbered.value())
}

/// Groups three or more names that differ only in their number into a row, ordered by number; each other name is a row of its own.
///
/// ```
/// use vcpulab_judge::names::rows;
/// assert_eq!(rows(["web", "batch10", "batch2", "batch3"]), [vec!["web"], vec!["batch2", "batch3", "batch10"]]);
/// ```
pub fn rows<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Vec<&'a str>> {
    let mut groups: Vec<Vec<&str>> = Vec::new();
    let mut places = BTreeMap::new();
    for name in names {
        let place = *places.entry(without_number(name)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(name);
    }
    let mut rows = Vec::new();
    for mut group in groups {
        if group.len() < 3 {
            rows.extend(group.into_iter().map(|name| vec![name]));
        } else {
            group.sort_by_key(|name| value(name));
            rows.push(group);
        }
    }
    rows
}

/// A row by its first and its last name; of a row with gaps also the number of names.
pub fn ends(row: &[&str]) -> String {
    match row {
        [] => String::new(),
        [name] => (*name).to_owned(),
        [first, .., last] => {
            let is_whole = value(last).checked_sub(value(first)) == Some(row.len() as u128 - 1);
            let count = if is_whole { String::new() } else { format!(" ({})", row.len()) };
            format!("{first} to {last}{count}")
        }
    }
}

/// Several names in a few words: rows of numbered ones by their ends, and of many how many more there are.
///
/// ```
/// use vcpulab_judge::names::in_short;
/// assert_eq!(in_short(["b11", "web", "b1", "b2"]), "b1 to b11 (3), web");
/// assert_eq!(in_short(["web", "mail", "b1", "b2", "b3", "log"]), "web, mail and 4 more");
/// ```
pub fn in_short<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let rows = rows(names);
    let shown = if rows.len() <= SHOWN_MAX { rows.len() } else { SHOWN_MAX - 1 };
    let text = rows[..shown].iter().map(|row| ends(row)).collect::<Vec<_>>().join(", ");
    match rows[shown..].iter().map(Vec::len).sum() {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_be_before_that_of_an_application() {
        let names = ["batch10", "batch10.0", "1.5", "a1.2.3", "web", "web.x", "7"];
        let stems = ["batch#", "batch#.0", "#.5", "a1.#.3", "web", "web.x", "#"];
        assert_eq!(names.map(without_number), stems);
    }

    #[test]
    fn rows_are_shown_by_their_ends() {
        assert_eq!(in_short(["batch01", "batch02", "batch03"]), "batch01 to batch03");
        assert_eq!(in_short(["batch1", "batch3"]), "batch1, batch3");
        assert_eq!(in_short(["a1", "a2", "a5", "a9"]), "a1 to a9 (4)");
        assert_eq!(in_short(["web", "mail", "db", "log"]), "web, mail and 2 more");
        assert_eq!(in_short([]), "");
    }
}
