//! The path of a packet through the domains of the host, step by step. A domain takes a packet from a queue or a ring, the
//! [`route`] decides the next step, the [`cost`] of it is charged to the domain's vCPU, and then the packet is
//! [carried](carry) to its next place.

pub(crate) mod carry;
pub(crate) mod cost;
pub(crate) mod legs;
pub(crate) mod route;
