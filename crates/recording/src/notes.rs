//! Notes on a recording.

use std::collections::BTreeMap;

use serde::Serialize;

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The byte, from 0.
    Byte(u64),
    /// The line, from 1.
    Line(u64),
}

/// A note on missing, damaged or contradictory records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The kind of finding.
    pub what: &'static str,
    /// Number of findings.
    pub count: u64,
    /// Place of the first.
    pub first: Place,
    /// The text found there.
    pub found: String,
    /// The consequence for the metrics.
    pub means: &'static str,
}

/// The notes, one for each kind of thing.
#[derive(Clone, Debug, Default)]
pub struct Notes(BTreeMap<&'static str, Note>);

impl Notes {
    /// Counts one more; `found` is asked for at the first only.
    #[cold]
    pub(crate) fn add(
        &mut self,
        what: &'static str,
        means: &'static str,
        first: Place,
        found: impl FnOnce() -> String,
    ) {
        self.more(1, what, means, first, found);
    }

    /// Counts `count` more.
    #[cold]
    pub(crate) fn more(
        &mut self,
        count: u64,
        what: &'static str,
        means: &'static str,
        first: Place,
        found: impl FnOnce() -> String,
    ) {
        let note = self.0.entry(what);
        note.or_insert_with(|| Note { what, count: 0, first, found: found(), means }).count += count;
    }

    /// In order of their texts.
    pub fn iter(&self) -> impl Iterator<Item = &Note> {
        self.0.values()
    }
}
