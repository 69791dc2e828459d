//! What crossed the devices of a domain.

use super::Machine;
use crate::block::BlockCounts;
use crate::config::Owner;
use crate::disk::DiskCounts;
use crate::interface::InterfaceCounts;
use crate::nic::NicCounts;
use crate::tcp::Packet;

/// The I/O of a domain since the last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoCounts {
    /// Its network interface.
    pub interface: Option<InterfaceCounts>,
    /// The cards that it owns, together.
    pub nics: Option<NicCounts>,
    /// Its virtual disk.
    pub block: Option<BlockCounts>,
    /// The disks that it owns, together.
    pub disks: Option<DiskCounts>,
    /// Packets to it or from it that were lost and sent again.
    pub retransmissions: u64,
}

impl Machine {
    /// The I/O of a domain.
    pub fn io_counts(&self, guest: usize) -> IoCounts {
        let owns_card = |owner| matches!(owner, Owner::Guest { guest: owner, .. } if owner == guest);
        IoCounts {
            interface: self.interface_counts(guest),
            nics: self.nics.iter().any(|nic| owns_card(nic.config.owner)).then(|| self.nic_counts(guest)),
            block: self.block_counts(guest),
            disks: self.disk_counts(guest),
            retransmissions: self.guests[guest].retransmissions,
        }
    }

    /// What the disks did that a domain owns, if it owns any.
    fn disk_counts(&self, guest: usize) -> Option<DiskCounts> {
        let owned = self.disks.iter().filter(|unit| unit.owner.is_some_and(|(owner, _)| owner == guest));
        owned.filter_map(|unit| Some(unit.store.disk()?.counts)).reduce(|sum, one| DiskCounts {
            requests: sum.requests + one.requests,
            merges: sum.merges + one.merges,
            read_bytes: sum.read_bytes + one.read_bytes,
            written_bytes: sum.written_bytes + one.written_bytes,
            seeks: sum.seeks + one.seeks,
            interrupts: sum.interrupts + one.interrupts,
            busy_ns: sum.busy_ns + one.busy_ns,
        })
    }

    /// A lost packet is sent again: that is counted for the domains at its ends.
    pub(super) fn count_retransmission(&mut self, packet: &Packet) {
        let Some(connection) = self.connections.get(packet.connection) else { return };
        let [one, other] = connection.parties.map(|party| party.guest());
        for guest in one.into_iter().chain(other.filter(|_| other != one)) {
            self.guests[guest].retransmissions += 1;
        }
    }
}
