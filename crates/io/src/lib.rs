//! The I/O path: rings, event channels, driver domains, NICs, links and the clients outside.

pub mod config;

pub use config::{ClientConfig, DriverConfig, InterfaceConfig, NicConfig, TcpConfig, WorldConfig};
