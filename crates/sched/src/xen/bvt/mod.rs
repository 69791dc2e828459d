//! BVT, borrowed virtual time: the vCPU whose weighted virtual time is furthest behind runs; a latency-sensitive
//! domain may warp, that is, be dispatched as if it were further behind. (Duda and Cheriton, SOSP 1999.)
//!
//! Two hypervisors have it, in programs of their own: [`xen`], and [`acrn`].

pub mod acrn;
pub mod xen;
