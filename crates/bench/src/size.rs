//! Sizes of hosts.

/// A host size.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Physical CPUs.
    pub pcpus: u32,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Virtual CPUs of each domain.
    pub vcpus_each: u32,
}

/// The sizes measured.
pub const SIZES: [Size; 3] = [
    Size { pcpus: 4, vcpus: 16, vcpus_each: 1 },
    Size { pcpus: 8, vcpus: 256, vcpus_each: 1 },
    Size { pcpus: 64, vcpus: 4096, vcpus_each: 1 },
];
