//! The netbacks on one vCPU of a driver domain: between the domain's NICs and the rings of the guests behind it.
//!
//! They poll: first the NICs, then packets that other vCPUs have left to their threads, then the rings, each guest in turn, up
//! to a budget for each direction; guests are notified at the end of a poll. So a driver domain that is given the pCPU late
//! finds more to do at once: batching is not a parameter here.

use std::collections::VecDeque;

use vcpulab_host::{Table, Time, WorldContext};

use super::netfront::Netfront;
use super::nic::Nic;
use crate::ids::{NetfrontId, NicId, PacketId};
use crate::path::route::Origin;

/// The way in which the netbacks of driver domains work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Netbacks {
    /// A single pair of tasklets: one vCPU of a driver domain at a time handles packets.
    Tasklet,
    /// A pair of tasklets for each vCPU, run by the one that took the interrupt or the event.
    Tasklets,
    /// A thread for each, or for each vCPU: packets for a guest are left to the vCPU of its netback.
    Threads,
}

/// Packets of one direction in one poll, before the other direction has its turn (the usual budget of a network driver's
/// polling loop).
const POLL_BUDGET: usize = 64;

/// A packet taken by a poll.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Polled {
    /// A packet.
    Packet { from: Origin, packet: PacketId },
    /// No packet: the budget is used up.
    BudgetUsed,
    /// No packet: the rings contain none that a NIC has room for.
    Empty,
}

/// The network back ends on one vCPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Netback {
    /// The NICs whose interrupts the vCPU takes.
    pub nics: Vec<NicId>,
    /// Packets that other vCPUs have left to the threads here, for guests.
    left: VecDeque<(NetfrontId, PacketId)>,
    /// The rest of the poll's budget in each direction.
    receives: usize,
    sends: usize,
    /// Netfronts with packets in their rings, each once, the next one first.
    senders: VecDeque<NetfrontId>,
    /// Netfronts whose guests are notified at the end of the poll.
    to_notify: Vec<NetfrontId>,
}

impl Netback {
    /// Takes over all that another one had.
    pub fn append(&mut self, other: &mut Netback) {
        self.nics.append(&mut other.nics);
        self.left.append(&mut other.left);
        self.senders.append(&mut other.senders);
        self.to_notify.append(&mut other.to_notify);
    }

    /// Notes a netfront's first packet in an empty ring.
    pub fn ring_filled(&mut self, netfront: NetfrontId) {
        self.senders.push_back(netfront);
    }

    /// Number of netfronts with packets in their rings.
    pub fn senders(&self) -> usize {
        self.senders.len()
    }

    /// Leaves it a packet for a guest whose netback is here.
    pub fn leave(&mut self, netfront: NetfrontId, packet: PacketId) {
        self.left.push_back((netfront, packet));
    }

    /// Number of packets that wait in its NICs, or have been left to it.
    pub fn waiting(&self, nics: &Table<NicId, Nic>) -> usize {
        self.nics.iter().map(|&nic| nics[nic].waiting()).sum::<usize>() + self.left.len()
    }

    /// Whether packets stay in rings at the end of a poll: their NIC has no room.
    pub fn waits_for_room(&self) -> bool {
        !self.senders.is_empty()
    }

    /// Whether there are packets to take.
    pub fn has_packets(&self, nics: &Table<NicId, Nic>) -> bool {
        !self.senders.is_empty() || self.waiting(nics) > 0
    }

    /// Begins a poll.
    pub fn begin_poll(&mut self, nics: &Table<NicId, Nic>) {
        (self.receives, self.sends) = (self.waiting(nics).min(POLL_BUDGET), POLL_BUDGET);
    }

    /// Takes the next packet of the poll.
    pub fn poll(
        &mut self,
        now: Time,
        nics: &mut Table<NicId, Nic>,
        netfronts: &mut Table<NetfrontId, Netfront>,
    ) -> Polled {
        if self.receives > 0 {
            self.receives -= 1;
            let received =
                self.nics.iter().find_map(|&nic| nics[nic].take_received().map(|packet| (nic, packet)));
            if let Some((nic, packet)) = received {
                return Polled::Packet { from: Origin::Nic(nic), packet };
            }
            if let Some((netfront, packet)) = self.left.pop_front() {
                return Polled::Packet { from: Origin::Thread(netfront), packet };
            }
        }
        if self.senders.is_empty() {
            return Polled::Empty;
        }
        if self.sends == 0 {
            return Polled::BudgetUsed;
        }
        match self.take(now, nics, netfronts) {
            Some((netfront, packet)) => {
                self.sends -= 1;
                Polled::Packet { from: Origin::RingOut(netfront), packet }
            }
            None => Polled::Empty,
        }
    }

    /// The next packet from the rings whose NIC has room for it.
    fn take(
        &mut self,
        now: Time,
        nics: &Table<NicId, Nic>,
        netfronts: &mut Table<NetfrontId, Netfront>,
    ) -> Option<(NetfrontId, PacketId)> {
        for _ in 0..self.senders.len() {
            let sender = self.senders.pop_front()?;
            let netfront = &mut netfronts[sender];
            if !nics[netfront.nic].can_send(now) {
                self.senders.push_back(sender);
                continue;
            }
            let Some((packet, notify)) = netfront.take() else { continue };
            if notify {
                self.to_notify.push(sender);
            }
            if netfront.has_packets() {
                self.senders.push_back(sender);
            }
            return Some((sender, packet));
        }
        None
    }

    /// Has the guest of a netfront notified at the end of the poll.
    pub fn notify_later(&mut self, netfront: NetfrontId) {
        self.to_notify.push(netfront);
    }

    /// Ends a poll: notifies guests.
    pub fn end_poll(&mut self, ctx: &mut WorldContext<'_>, netfronts: &mut Table<NetfrontId, Netfront>) {
        for netfront in self.to_notify.drain(..) {
            netfronts[netfront].send_event(ctx);
        }
    }
}
