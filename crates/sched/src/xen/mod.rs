//! Xen's schedulers, of its releases and of its past, a file or folder each.

pub mod arinc653;
pub mod atropos;
pub mod bvt;
pub mod credit;
pub mod credit2;
pub mod enhanced;
pub mod null;
pub mod rtds;
pub mod sedf;
