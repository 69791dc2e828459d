//! Machines on hosts under every scheduler, compiled as one.

mod guests;
mod machine;
mod stub_domain;
