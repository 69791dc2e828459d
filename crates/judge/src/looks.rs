//! The number of looks at two runs.

use serde::Deserialize;

/// The choice of the number of replications of two runs. Every further look is a further chance to find a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stopping {
    /// The number is stated before the runs.
    Stated,
    /// The number is doubled while a large harm is uncertain.
    Decided,
    /// The number is doubled while a large harm is uncertain and time is left.
    Timed,
}

impl Stopping {
    /// The largest number of looks, which p values are corrected for.
    pub fn looks(self) -> u32 {
        match self {
            Stopping::Stated => 1,
            Stopping::Decided => 3,
            Stopping::Timed => 8,
        }
    }
}
