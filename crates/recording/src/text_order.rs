//! The order of the lines of a text by their times: each CPU's lines are in order, unless their times are differences.

use crate::error::ReadError;

/// Lines of a CPU that go back in time: fewer are damage, or clocks that were set.
const BACK_MIN: u64 = 4;
/// Part of all lines that go back in time when times are differences; of random differences every second one does.
const BACK_PART: u64 = 10;

/// A count of the lines whose time is before that of the line before of the same CPU.
#[derive(Debug, Default)]
pub struct TextOrder {
    /// By CPU: the time of its last line.
    last_ns: Vec<u64>,
    lines: u64,
    back: u64,
    first_back: u64,
}

impl TextOrder {
    /// Takes the time of a line.
    pub fn take(&mut self, line: u64, pcpu: u32, time_ns: u64) {
        let p = pcpu as usize;
        if self.last_ns.len() <= p {
            self.last_ns.resize(p + 1, 0);
        }
        self.lines += 1;
        if time_ns < std::mem::replace(&mut self.last_ns[p], time_ns) {
            self.back += 1;
            if self.first_back == 0 {
                self.first_back = line;
            }
        }
    }

    /// Checks that times are not differences between lines.
    ///
    /// # Errors
    /// They are.
    pub fn check(&self) -> Result<(), ReadError> {
        if self.back < BACK_MIN || self.back * BACK_PART < self.lines {
            return Ok(());
        }
        Err(ReadError::Differences { line: self.first_back, back: self.back, lines: self.lines })
    }
}
