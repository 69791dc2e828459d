//! The file formats: the fields of a scenario and of a hardware profile, their words, and the JSON schema.

pub(crate) mod copies;
pub(crate) mod profile;
pub(crate) mod raw;
pub(crate) mod schema;
pub(crate) mod topology;
pub(crate) mod words;
