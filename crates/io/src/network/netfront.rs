//! A guest's virtual network interface: its half of a split driver, and the ring between the two halves.

use std::collections::VecDeque;

use vcpulab_host::{IoKind, IoStep, Span, VcpuId, WakeCause, WorldContext};

use super::packets::Packets;
use crate::ids::{NetfrontId, NicId, PacketId};
use crate::path::route::{Origin, Uplink};

/// A piece of work of a guest's network stack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NetfrontWork {
    /// Takes an event.
    Upcall,
    /// Receives or sends a packet.
    Packet { from: Origin, packet: PacketId },
}

/// A page of memory, bytes.
const PAGE_BYTES: u32 = 4096;

/// A domain's virtual network interface, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetfrontConfig {
    /// The way of its packets out of the domain.
    pub uplink: Uplink,
    /// The NIC by which they leave the host.
    pub nic: NicId,
    /// Number of the domain's vCPU that takes its events.
    pub vcpu: u32,
    /// Packets that the ring holds in each direction.
    pub ring_slots: usize,
    /// Most segments that it sends as one packet, which the NIC cuts (TCP segmentation offload); 1: none.
    pub segments_max: u32,
    /// Emulation of a NIC, ns of CPU time for each packet in the domain that emulates it.
    pub emulation_ns: Span,
}

/// Traffic of a netfront since the last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetfrontCounts {
    /// Packets that the guest took from the ring.
    pub received: u64,
    /// Packets that the guest put into the ring.
    pub sent: u64,
    /// Size of the packets received on the link, bytes.
    pub bytes_received: u64,
    /// Size of the packets sent on the link, bytes.
    pub bytes_sent: u64,
    /// Pages that changed owner: one for each packet put into the guest's ring.
    pub page_exchanges: u64,
    /// Pages granted to the driver domain with packets sent.
    pub page_grants: u64,
    /// Events sent to the guest.
    pub events: u64,
    /// Packets for the guest that found the ring full and were lost.
    pub dropped: u64,
}

/// A virtual network interface.
#[derive(Clone, Debug)]
pub(crate) struct Netfront {
    id: NetfrontId,
    /// The way of its packets out of the guest, and the NIC by which they leave the host.
    pub uplink: Uplink,
    pub nic: NicId,
    pub segments_max: u32,
    pub emulation_ns: Span,
    pub counts: NetfrontCounts,
    /// The vCPU that takes its events, and its number in the guest.
    pub vcpu: VcpuId,
    pub vcpu_number: u32,
    /// The vCPU of the driver domain that worked at its rings last.
    touched_by: Option<VcpuId>,
    /// Slots of each ring. Those that are never filled take no memory.
    slots: usize,
    /// Packets that wait for room in the ring.
    to_send: VecDeque<PacketId>,
    /// Slots taken for packets that vCPUs are just sending.
    sending: usize,
    transmit_ring: VecDeque<PacketId>,
    receive_ring: VecDeque<PacketId>,
    /// Slots taken for packets that have been left to the netback's thread.
    left: usize,
    /// Whether an event has been sent that the guest has not taken yet.
    event_pending: bool,
    /// Whether an event is due at the end of the driver's poll.
    event_due: bool,
}

impl Netfront {
    /// An idle netfront of a guest whose first vCPU this is.
    pub fn new(id: NetfrontId, config: &NetfrontConfig, first_vcpu: VcpuId) -> Self {
        Netfront {
            id,
            uplink: config.uplink,
            nic: config.nic,
            segments_max: config.segments_max,
            emulation_ns: config.emulation_ns,
            counts: NetfrontCounts::default(),
            vcpu: VcpuId(first_vcpu.0 + config.vcpu),
            vcpu_number: config.vcpu,
            touched_by: None,
            slots: config.ring_slots,
            to_send: VecDeque::new(),
            sending: 0,
            transmit_ring: VecDeque::new(),
            receive_ring: VecDeque::new(),
            left: 0,
            event_pending: false,
            event_due: false,
        }
    }

    // ---- the guest's side ----

    /// The next work of the guest's network on that vCPU. One vCPU receives; all send, if there is room in the NIC.
    pub fn next(&mut self, vcpu_number: u32, nic_has_room: bool, packets: &Packets) -> Option<NetfrontWork> {
        let receives = vcpu_number == self.vcpu_number;
        if receives && std::mem::take(&mut self.event_pending) {
            return Some(NetfrontWork::Upcall);
        }
        // An answer leaves before the next packet is taken: TCP answers in its receive path.
        let room = self.transmit_ring.len() + self.sending < self.slots;
        if nic_has_room
            && room
            && let Some(packet) = self.to_send.pop_front()
        {
            self.sending += 1;
            return Some(NetfrontWork::Packet { from: Origin::SendQueue(self.id), packet });
        }
        if !receives {
            return None;
        }
        let packet = self.receive_ring.pop_front()?;
        self.counts.received += 1;
        self.counts.bytes_received += u64::from(packets[packet].link_bytes());
        Some(NetfrontWork::Packet { from: Origin::RingIn(self.id), packet })
    }

    /// Whether packets wait to be sent.
    pub fn wants_to_send(&self) -> bool {
        !self.to_send.is_empty()
    }

    /// Drops all packets under way, because the domain starts again.
    pub fn clear(&mut self, packets: &mut Packets) {
        for queue in [&mut self.to_send, &mut self.transmit_ring, &mut self.receive_ring] {
            packets.remove_all(queue.drain(..));
        }
        self.sending = 0;
        self.left = 0;
        (self.event_pending, self.event_due) = (false, false);
    }

    /// Counts a packet that leaves the guest.
    pub fn sent(&mut self, packet: PacketId, packets: &Packets) {
        self.sending = self.sending.saturating_sub(1);
        self.counts.sent += 1;
        self.counts.bytes_sent += u64::from(packets[packet].link_bytes());
    }

    /// Enqueues a packet to be sent by the next vCPU of the guest that comes to it.
    pub fn enqueue(&mut self, packet: PacketId) {
        self.to_send.push_back(packet);
    }

    /// Puts a packet of the guest into the ring. True: the ring was empty.
    pub fn put(&mut self, packet: PacketId, packets: &Packets) -> bool {
        self.counts.page_grants += u64::from(packets[packet].bytes.div_ceil(PAGE_BYTES).max(1));
        self.transmit_ring.push_back(packet);
        self.transmit_ring.len() == 1
    }

    // ---- the driver domain's side ----

    /// Takes a packet from the ring. True: an event falls due with it, because the guest waits for the room.
    pub fn take(&mut self) -> Option<(PacketId, bool)> {
        let packet = self.transmit_ring.pop_front()?;
        let notify = !self.to_send.is_empty() && self.event_falls_due();
        Some((packet, notify))
    }

    /// Whether there is a packet in the ring for the driver domain.
    pub fn has_packets(&self) -> bool {
        !self.transmit_ring.is_empty()
    }

    /// Takes a slot in the ring for a packet that is left to the netback's thread; gives the packet back if there is none.
    pub fn leave(&mut self, packet: PacketId) -> Result<PacketId, PacketId> {
        if !self.has_room() {
            self.counts.dropped += 1;
            return Err(packet);
        }
        self.left += 1;
        Ok(packet)
    }

    /// Gives back the slot of a packet that was left to the netback's thread: it is in the ring next, or dropped.
    pub fn take_left(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    fn has_room(&self) -> bool {
        self.receive_ring.len() + self.left < self.slots
    }

    /// Puts a packet for the guest into the ring. True: an event falls due with it. Gives the packet back if the ring is full.
    pub fn deliver(&mut self, packet: PacketId) -> Result<bool, PacketId> {
        if !self.has_room() {
            self.counts.dropped += 1;
            return Err(packet);
        }
        self.receive_ring.push_back(packet);
        self.counts.page_exchanges += 1;
        Ok(self.event_falls_due())
    }

    /// Notes that a vCPU of the driver domain works at its rings. True: another did before.
    pub fn touch(&mut self, vcpu: VcpuId) -> bool {
        self.touched_by.replace(vcpu).is_some_and(|last| last != vcpu)
    }

    fn event_falls_due(&mut self) -> bool {
        !std::mem::replace(&mut self.event_due, true)
    }

    /// Sends the event that is due, unless one is on its way already.
    pub fn send_event(&mut self, ctx: &mut WorldContext<'_>) {
        self.event_due = false;
        if !std::mem::replace(&mut self.event_pending, true) {
            self.counts.events += 1;
            let domain = ctx.host().dom(self.vcpu);
            let (id, value) = (self.counts.events, self.receive_ring.len() as i64);
            ctx.step(IoStep { kind: IoKind::EventSent, domain, id, value });
            ctx.kick(self.vcpu, WakeCause::Event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcpulab_guest::ConnectionId;

    use crate::ids::GuestId;
    use crate::network::tcp::{Kind, Packet, Side};

    /// A netfront that wants to send four packets.
    fn netfront(slots: usize) -> (Netfront, Packets) {
        let config = NetfrontConfig {
            uplink: Uplink::DriverDomain { guest: GuestId(0), vcpu: 0 },
            nic: NicId(0),
            vcpu: 0,
            ring_slots: slots,
            segments_max: 1,
            emulation_ns: Span::ZERO,
        };
        let mut netfront = Netfront::new(NetfrontId(0), &config, VcpuId(1));
        let mut packets = Packets::default();
        for connection in 0..4 {
            netfront.enqueue(packets.add(packet(connection, Kind::SynAck)));
        }
        (netfront, packets)
    }

    fn packet(connection: u64, kind: Kind) -> Packet {
        Packet {
            connection: ConnectionId(connection),
            to: Side::Called,
            kind,
            segments: 1,
            bytes: 0,
            acknowledges: 0,
            space: 0,
            retransmissions: 0,
            leg: None,
        }
    }

    fn send(netfront: &mut Netfront, packets: &Packets) -> Option<bool> {
        match netfront.next(0, true, packets) {
            Some(NetfrontWork::Packet { from: Origin::SendQueue(_), packet }) => {
                netfront.sent(packet, packets);
                Some(netfront.put(packet, packets))
            }
            _ => None,
        }
    }

    #[test]
    fn a_full_ring_keeps_packets_back_until_one_is_taken() {
        let (mut netfront, packets) = netfront(2);
        let sent = [(); 3].map(|()| send(&mut netfront, &packets));
        assert_eq!(sent, [Some(true), Some(false), None]);
        let (first, notify) = netfront.take().unwrap();
        assert!(packets[first].connection == ConnectionId(0) && notify, "the guest waits for room");
        assert_eq!(send(&mut netfront, &packets), Some(false));
        let (_, notify) = netfront.take().unwrap();
        assert!(!notify, "an event is due already");
    }

    #[test]
    fn an_answer_leaves_before_the_next_packet_is_taken() {
        let (mut netfront, mut packets) = netfront(2);
        netfront.to_send.clear();
        let origin = |netfront: &mut Netfront, packets: &Packets| match netfront.next(0, true, packets) {
            Some(NetfrontWork::Packet { from, .. }) => Some(from),
            _ => None,
        };
        for connection in [7, 8] {
            netfront.deliver(packets.add(packet(connection, Kind::Syn))).unwrap();
        }
        assert_eq!(origin(&mut netfront, &packets), Some(Origin::RingIn(NetfrontId(0))));
        netfront.enqueue(packets.add(packet(7, Kind::SynAck)));
        assert_eq!(origin(&mut netfront, &packets), Some(Origin::SendQueue(NetfrontId(0))));
        assert_eq!(origin(&mut netfront, &packets), Some(Origin::RingIn(NetfrontId(0))));
    }

    #[test]
    fn vcpus_that_send_at_once_do_not_overfill_the_ring() {
        let (mut netfront, packets) = netfront(1);
        assert!(netfront.next(0, true, &packets).is_some());
        assert!(netfront.next(1, true, &packets).is_none(), "the only slot is spoken for");
    }

    #[test]
    fn what_finds_no_room_comes_back() {
        let (mut netfront, mut packets) = netfront(1);
        let packet = packets.add(packet(7, Kind::Syn));
        assert_eq!(netfront.deliver(packet), Ok(true));
        assert_eq!(netfront.deliver(packet), Err(packet));
        assert_eq!((netfront.counts.page_exchanges, netfront.counts.dropped), (1, 1));
    }
}
