//! Identities of a guest's parts, and of its surroundings as far as its scripts name them.

vcpulab_host::ids! {
    /// A task of one guest, numbered from 0 over all its applications, in their order.
    pub struct TaskId;

    /// An application of one guest, numbered from 0 in the order configured.
    pub struct AppId;

    /// A service, numbered from 0 over all guests of a machine.
    pub struct ServiceId;

    /// An event channel between tasks, numbered from 0 over all guests of a machine.
    pub struct ChannelId;
}

/// A connection, as the network names it. A guest only passes it on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ConnectionId(pub u64);
