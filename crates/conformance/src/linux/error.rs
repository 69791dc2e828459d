/// The reason why a recording cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}, line {line}: {field}: found `{found}`, allowed: {allowed}")]
pub struct LinuxError {
    /// The file.
    pub file: &'static str,
    /// The line, from 1.
    pub line: usize,
    /// The field.
    pub field: String,
    /// The value found.
    pub found: String,
    /// The values allowed.
    pub allowed: String,
}

/// Characters of a value that a message shows.
const SHOWN_MAX: usize = 120;

/// A line of a file, for messages.
#[derive(Clone, Copy)]
pub struct At {
    pub file: &'static str,
    pub line: usize,
}

impl At {
    pub fn error<T>(self, field: &str, found: &str, allowed: &str) -> Result<T, LinuxError> {
        Err(LinuxError {
            file: self.file,
            line: self.line,
            field: field.to_owned(),
            found: found.chars().take(SHOWN_MAX).collect(),
            allowed: allowed.to_owned(),
        })
    }

    /// A whole number in these bounds.
    pub fn number(self, field: &str, found: &str, least: i64, most: i64) -> Result<i64, LinuxError> {
        match found.parse() {
            Ok(value) if (least..=most).contains(&value) => Ok(value),
            _ => self.error(field, found, &format!("a whole number from {least} to {most}")),
        }
    }
}
