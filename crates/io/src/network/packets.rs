//! The packets under way. Each stays in its place, and queues, links and pieces of work hold its number.

use std::ops::{Index, IndexMut};

use vcpulab_host::Table;

use super::tcp::Packet;
use crate::ids::PacketId;

/// All packets under way. Numbers are used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packets {
    all: Table<PacketId, Packet>,
    free: Vec<PacketId>,
}

impl Packets {
    /// Puts a packet on its way.
    pub fn add(&mut self, packet: Packet) -> PacketId {
        match self.free.pop() {
            Some(id) => {
                self.all[id] = packet;
                id
            }
            None => self.all.push(packet),
        }
    }

    /// Removes a packet that has come to the end of its way.
    pub fn remove(&mut self, id: PacketId) -> Packet {
        debug_assert!(!self.free.contains(&id), "a packet has one end");
        self.free.push(id);
        self.all[id]
    }

    /// Removes packets that get no further.
    pub fn remove_all(&mut self, ids: impl IntoIterator<Item = PacketId>) {
        ids.into_iter().for_each(|id| _ = self.remove(id));
    }
}

impl Index<PacketId> for Packets {
    type Output = Packet;

    #[inline(always)]
    fn index(&self, id: PacketId) -> &Packet {
        &self.all[id]
    }
}

impl IndexMut<PacketId> for Packets {
    #[inline(always)]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.all[id]
    }
}
