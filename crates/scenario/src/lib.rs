//! Scenario files: text to a checked scenario, and a checked scenario to text.
//!
//! A scenario is a TOML file. It goes through three stations, each in a folder of its own:
//!
//! 1. `text`: quantities with units, problems with their places, and the reader, which keeps the position of every value.
//! 2. `file`: the fields. Each is declared once (`record!`): type, range, default and description. From that follow the
//!    reader, which reports every unknown, missing and mistyped field, the check of the single value, and the JSON
//!    [`schema`](schema()).
//! 3. `check`: makes a [`Spec`](vcpulab_spec::Spec) of it, in which every value is within its limits and every reference
//!    leads somewhere. It collects all [`Problems`]; what is allowed but doubtful becomes a warning. Scheduler parameters
//!    are checked against the registry's tables alone; no scheduler is named here.
//!
//! `write` is the way back, with a file for each of those in `check`. [`edit`](edit()) changes values in a user's own text, and
//! [`change`](change()) settings by the addresses that people type.
//!
//! ```
//! use vcpulab_scenario::Scenario;
//!
//! let text = "
//!     [host]
//!     scheduler = 'credit'
//!     [domain.web]
//!     weight = 70000
//! ";
//! let problems = Scenario::parse(text, "web.toml").unwrap_err();
//! assert_eq!(
//!     problems.to_string(),
//!     "web.toml:5:14: domain.web.weight: found `70000`; allowed: 0 or an integer from 1 to 65535"
//! );
//! ```

mod change;
mod check;
mod describe;
mod edit;
mod file;
mod outside;
mod scenario;
#[cfg(test)]
mod tests;
mod text;
mod write;

pub use change::{
    AddressError, ChangeError, Changed, Edited, NewNames, Set, addressed, change, edit_settings,
};
pub use describe::{policy_json, profile_json, profiles_json, schedulers_json};
pub use edit::{Edit, EditError, edit};
pub use file::copies::{copies, written};
pub use file::profile::{find_profile, parse_profile, profiles, read_profile};
pub use file::schema::schema;
pub use outside::{FoundPolicy, Outside};
pub use scenario::{Scenario, starter};
pub use text::limits::{FILE_BYTES_MAX, PROBLEMS_MAX};
pub use text::problem::{Problem, Problems};
pub use text::units::{Duration, Size};
