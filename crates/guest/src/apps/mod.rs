//! The applications by name: each with its parameters and the script that it comes to. A new one is one file here and one
//! line in [`KINDS`].

mod active_directory;
mod cpu_stress;
mod dd;
mod exchange;
mod file_access;
mod hog;
mod iozone;
mod iperf;
mod kernel_build;
mod kind;
mod moss;
mod mssql;
mod mysql;
mod netperf;
mod nfs;
mod oltp;
mod parts;
mod periodic;
mod php_web;
pub mod specweb99;
mod spin;
mod stream;
mod tcp_receiver;
mod tcp_sender;
#[cfg(test)]
mod tests;
mod web_server;

pub use kind::{AppDefault, AppKind, AppParam, AppParamKind, AppValue, Args, RequestClass};

/// All kinds, in the order of the documentation.
pub const KINDS: &[&AppKind] = &[
    &hog::KIND,
    &cpu_stress::KIND,
    &periodic::KIND,
    &spin::KIND,
    &kernel_build::KIND,
    &tcp_sender::KIND,
    &tcp_receiver::KIND,
    &iperf::KIND,
    &netperf::KIND,
    &dd::KIND,
    &iozone::KIND,
    &oltp::KIND,
    &web_server::KIND,
    &php_web::KIND,
    &mysql::KIND,
    &nfs::KIND,
    &active_directory::KIND,
    &exchange::KIND,
    &moss::KIND,
    &mssql::KIND,
];

/// The kind of that name.
pub fn find(name: &str) -> Option<&'static AppKind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}
