//! Typed numbers: simulated time and the identities of things on a host.

/// A point in simulated time, in nanoseconds since the host started.
pub type Time = i64;

/// A length of simulated time, in nanoseconds.
pub type Span = i64;

/// Later than any event: a timer that is not set.
pub const NEVER: Time = i64::MAX;

/// One physical CPU, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct PcpuId(pub u32);

/// One virtual CPU, numbered from 0 over the whole host. The idle vCPU of pCPU *p* is number *p*; the vCPUs of
/// domains follow in order of creation, so a domain's vCPUs are consecutive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct VcpuId(pub u32);

/// One domain, numbered from 0 in order of creation. (The number an administrator sees is `HostState::domain_number`.)
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct DomId(pub u32);

/// One timer, numbered in order of creation; this order breaks ties between timers due at one instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct TimerId(pub u32);

macro_rules! indexes {
    ($($id:ident),*) => {$(
        impl $id {
            /// As an index into a table kept per id.
            #[inline(always)]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}
indexes!(PcpuId, VcpuId, DomId, TimerId);
