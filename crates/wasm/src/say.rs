//! Messages on the standard error; the standard output is for the answer.

use std::io::{self, Write};

/// Writes a message. A failure to write is ignored.
pub fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
