//! What a reader has to say of a recording.

use std::collections::BTreeMap;

use serde::Serialize;

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The byte, from 0.
    Byte(u64),
    /// The line, from 1.
    Line(u64),
}

/// Something about a recording that its reader must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// What was found.
    pub what: &'static str,
    /// How often.
    pub count: u64,
    /// Where first.
    pub first: Place,
    /// What was found there.
    pub found: String,
    /// What that means for the figures.
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

    /// Counts so many more.
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
