//! Messages on the standard error; the standard output is for the answer.

use std::io::{self, Write};

/// Says it; nobody may listen.
pub fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
