//! The path of a packet: the next step of it, and what the step costs.

pub(crate) mod cost;
pub(crate) mod legs;
pub(crate) mod route;
