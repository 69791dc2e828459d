//! Stretches of a virtual disk, and the pages that they touch.

/// A page of memory, bytes: a segment of a request holds one.
pub const PAGE_BYTES: u64 = 4096;

/// A stretch of a virtual disk, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub start: u64,
    pub bytes: u64,
}

impl Stretch {
    pub fn end(&self) -> u64 {
        self.start + self.bytes
    }

    /// The pages that it touches.
    pub fn pages(&self) -> Stretch {
        let start = self.start / PAGE_BYTES * PAGE_BYTES;
        Stretch { start, bytes: self.end().next_multiple_of(PAGE_BYTES) - start }
    }
}
