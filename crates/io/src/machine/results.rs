//! Results of guests and clients.

use vcpulab_guest::{AppId, AppStats};

use crate::ids::{ClientId, GuestId};
use crate::network::netfront::NetfrontCounts;
use crate::network::nic::NicCounts;
use crate::storage::blkfront::BlkfrontCounts;
use crate::storage::disk::DiskCounts;

/// Achievements of an application since the last reset.
#[derive(Clone, Debug)]
pub struct AppResult<'a> {
    /// Domain of the application.
    pub guest: GuestId,
    /// Position of the application in the domain; clients of a domain's services follow its applications.
    pub app: AppId,
    /// The client whose view it is, from outside, if it is one.
    pub client: Option<ClientId>,
    /// Counts and response times.
    pub stats: &'a AppStats,
}

/// The I/O of a domain since the last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoCounts {
    /// Counts of the virtual network interface.
    pub netfront: Option<NetfrontCounts>,
    /// The NICs that it owns, together.
    pub nics: Option<NicCounts>,
    /// Counts of the virtual disk.
    pub blkfront: Option<BlkfrontCounts>,
    /// The disks that it owns, together.
    pub disks: Option<DiskCounts>,
    /// Packets to it or from it that were lost and sent again.
    pub retransmissions: u64,
}
