//! Identities of things on a host, each a type of its own.

/// The index types of [tables](crate::Table): each is a `u32` in a type of its own, numbered from 0.
///
/// ```
/// vcpulab_host::ids! {
///     /// A shelf.
///     pub struct ShelfId;
/// }
/// assert_eq!(ShelfId(3).index(), 3);
/// ```
#[macro_export]
macro_rules! ids {
    ($($(#[$attribute:meta])* $visibility:vis struct $Id:ident;)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        $visibility struct $Id(pub u32);

        impl $Id {
            /// The id as an index into a table kept per id.
            #[inline(always)]
            $visibility fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl $crate::Id for $Id {
            #[inline(always)]
            fn from_index(index: usize) -> Self {
                $Id(index as u32)
            }

            #[inline(always)]
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A physical CPU, numbered from 0.
    pub struct PcpuId;

    /// A virtual CPU, numbered from 0 over the whole host. The idle vCPU of pCPU *p* is number *p*; the vCPUs of
    /// domains follow in order of creation, so a domain's vCPUs are consecutive.
    pub struct VcpuId;

    /// A domain, numbered from 0 in order of creation. (An administrator sees
    /// [`PolicyContext::domain_number`](crate::PolicyContext::domain_number).)
    pub struct DomId;

    /// A CPU pool, numbered from 0 in the order of [`HostConfig::pools`](crate::HostConfig::pools).
    #[derive(Default)]
    pub struct PoolId;

    /// A control group, numbered from 0 in the order of [`HostConfig::groups`](crate::HostConfig::groups).
    pub struct GroupId;

    /// A part of a domain with a control group of its own, by the number that the policy gives it.
    pub struct PartId;

    /// A timer, numbered in order of creation; this order breaks ties between timers due at one instant.
    pub struct TimerId;
}
