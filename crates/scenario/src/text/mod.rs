//! Text of a file: quantities, problems and their places, values that remember where they stood.

pub(crate) mod defaults;
pub(crate) mod limits;
pub(crate) mod params;
pub(crate) mod problem;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod units;
pub(crate) mod value;
