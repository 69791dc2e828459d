//! A guest's network interface: its half of a split driver, and the ring between the two halves.

use std::collections::VecDeque;

use vcpulab_host::{IoKind, IoStep, Span, VcpuId, WakeCause, WorldContext};

use crate::config::{InterfaceConfig, Link};
use crate::tcp::Packet;

/// What a guest's network stack is at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InterfaceWork {
    /// It takes an event.
    Upcall,
    /// It receives a packet.
    Receive(Packet),
    /// It sends one.
    Send(Packet),
}

/// A page of memory, bytes.
const PAGE_BYTES: u32 = 4096;

/// What crossed an interface since the last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InterfaceCounts {
    /// Packets that the guest took from the ring.
    pub received: u64,
    /// Packets that the guest put into the ring.
    pub sent: u64,
    /// Their size on the line, bytes.
    pub bytes_received: u64,
    /// The same of those sent.
    pub bytes_sent: u64,
    /// Pages that changed owner: one for each packet handed to the guest.
    pub page_exchanges: u64,
    /// Pages granted to the driver domain with packets sent.
    pub page_grants: u64,
    /// Events sent to the guest.
    pub events: u64,
    /// Packets for the guest that found the ring full and were lost.
    pub dropped: u64,
}

/// A network interface.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    /// What carries its packets, and the card that they leave by.
    pub link: Link,
    pub nic: usize,
    pub segments_max: u32,
    pub emulation_ns: Span,
    pub counts: InterfaceCounts,
    /// Where events go, and which of the guest's vCPUs that is.
    pub vcpu: VcpuId,
    pub vcpu_number: usize,
    /// Which vCPU of the driver domain worked at its rings last.
    pub touched_by: Option<VcpuId>,
    slots: usize,
    /// Packets that wait for room in the ring.
    to_send: VecDeque<Packet>,
    /// Slots taken for packets that vCPUs are just sending.
    sending: usize,
    transmit_ring: VecDeque<Packet>,
    receive_ring: VecDeque<Packet>,
    /// An event has been sent that the guest has not taken yet.
    event_pending: bool,
    /// An event is due at the end of the driver's round.
    event_due: bool,
}

impl Interface {
    /// An idle interface of a guest whose first vCPU this is.
    pub fn new(config: &InterfaceConfig, first_vcpu: VcpuId) -> Self {
        // Slots that are never filled must not cost memory.
        let capacity = config.ring_slots.min(256);
        Interface {
            link: config.link,
            nic: config.nic,
            segments_max: config.segments_max,
            emulation_ns: config.emulation_ns,
            counts: InterfaceCounts::default(),
            vcpu: VcpuId(first_vcpu.0 + config.vcpu),
            vcpu_number: config.vcpu as usize,
            touched_by: None,
            slots: config.ring_slots,
            to_send: VecDeque::with_capacity(capacity),
            sending: 0,
            transmit_ring: VecDeque::with_capacity(capacity),
            receive_ring: VecDeque::with_capacity(capacity),
            event_pending: false,
            event_due: false,
        }
    }

    // ---- the guest's side ----

    /// What the guest's network does next on that vCPU. One vCPU receives; all send, if the card takes anything.
    pub fn next(&mut self, vcpu_number: usize, card_takes: bool) -> Option<InterfaceWork> {
        let receives = vcpu_number == self.vcpu_number;
        if receives && std::mem::take(&mut self.event_pending) {
            return Some(InterfaceWork::Upcall);
        }
        // What a packet calls for leaves before the next one is taken: TCP answers in its receive path.
        let room = self.transmit_ring.len() + self.sending < self.slots;
        if card_takes
            && room
            && let Some(packet) = self.to_send.pop_front()
        {
            self.sending += 1;
            return Some(InterfaceWork::Send(packet));
        }
        if !receives {
            return None;
        }
        let packet = self.receive_ring.pop_front()?;
        self.counts.received += 1;
        self.counts.bytes_received += u64::from(packet.line_bytes());
        Some(InterfaceWork::Receive(packet))
    }

    /// Does anything wait to be sent?
    pub fn wants_to_send(&self) -> bool {
        !self.to_send.is_empty()
    }

    /// All that was under way is lost: its domain begins anew.
    pub fn clear(&mut self) {
        self.to_send.clear();
        self.sending = 0;
        self.transmit_ring.clear();
        self.receive_ring.clear();
        (self.event_pending, self.event_due) = (false, false);
    }

    /// A packet that was made ready has left past the ring.
    pub fn sent_directly(&mut self, packet: &Packet) {
        self.sending = self.sending.saturating_sub(1);
        self.counts.sent += 1;
        self.counts.bytes_sent += u64::from(packet.line_bytes());
    }

    /// Something is to be sent, as soon as a vCPU of the guest comes to it.
    pub fn queue_to_send(&mut self, packet: Packet) {
        self.to_send.push_back(packet);
    }

    /// The guest has made a packet ready: it goes into the ring. True: the ring was empty.
    pub fn put(&mut self, packet: Packet) -> bool {
        self.sent_directly(&packet);
        self.counts.page_grants += u64::from(packet.bytes.div_ceil(PAGE_BYTES).max(1));
        self.transmit_ring.push_back(packet);
        self.transmit_ring.len() == 1
    }

    // ---- the driver domain's side ----

    /// Takes a packet from the ring. True: an event falls due with it, because the guest waits for the room.
    pub fn take(&mut self) -> Option<(Packet, bool)> {
        let packet = self.transmit_ring.pop_front()?;
        let tell = !self.to_send.is_empty() && self.event_falls_due();
        Some((packet, tell))
    }

    /// Is there something in the ring for the driver domain?
    pub fn has_packets(&self) -> bool {
        !self.transmit_ring.is_empty()
    }

    /// Hands the guest a packet. True: an event falls due with it. Gives the packet back if the ring is full.
    pub fn hand_over(&mut self, packet: Packet) -> Result<bool, Packet> {
        if self.receive_ring.len() == self.slots {
            self.counts.dropped += 1;
            return Err(packet);
        }
        self.receive_ring.push_back(packet);
        self.counts.page_exchanges += 1;
        Ok(self.event_falls_due())
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
    use crate::tcp::{Kind, Side};

    fn interface(slots: usize) -> Interface {
        let config = InterfaceConfig {
            link: Link::Driver { guest: 0, vcpu: 0 },
            nic: 0,
            vcpu: 0,
            ring_slots: slots,
            segments_max: 1,
            emulation_ns: 0,
        };
        let mut interface = Interface::new(&config, VcpuId(1));
        for connection in 0..4 {
            interface.queue_to_send(packet(connection, Kind::SynAck));
        }
        interface
    }

    fn packet(connection: u64, kind: Kind) -> Packet {
        Packet { connection, to: Side::Called, kind, segments: 1, bytes: 0, acknowledges: 0, space: 0 }
    }

    fn send(interface: &mut Interface) -> Option<bool> {
        match interface.next(0, true) {
            Some(InterfaceWork::Send(packet)) => Some(interface.put(packet)),
            _ => None,
        }
    }

    #[test]
    fn a_full_ring_keeps_packets_back_until_one_is_taken() {
        let mut interface = interface(2);
        let sent = [send(&mut interface), send(&mut interface), send(&mut interface)];
        assert_eq!(sent, [Some(true), Some(false), None]);
        let (first, tell) = interface.take().unwrap();
        assert!(first.connection == 0 && tell, "the guest waits for room");
        assert_eq!(send(&mut interface), Some(false));
        let (_, tell) = interface.take().unwrap();
        assert!(!tell, "an event is due already");
    }

    #[test]
    fn an_answer_leaves_before_the_next_packet_is_taken() {
        let mut interface = interface(2);
        interface.to_send.clear();
        for connection in [7, 8] {
            interface.hand_over(packet(connection, Kind::Syn)).unwrap();
        }
        assert!(matches!(interface.next(0, true), Some(InterfaceWork::Receive(_))));
        interface.queue_to_send(packet(7, Kind::SynAck));
        assert!(matches!(interface.next(0, true), Some(InterfaceWork::Send(_))));
        assert!(matches!(interface.next(0, true), Some(InterfaceWork::Receive(_))));
    }

    #[test]
    fn vcpus_that_send_at_once_do_not_overfill_the_ring() {
        let mut interface = interface(1);
        assert!(interface.next(0, true).is_some());
        assert!(interface.next(1, true).is_none(), "the only slot is spoken for");
    }

    #[test]
    fn what_finds_no_room_comes_back() {
        let mut interface = interface(1);
        let packet = packet(7, Kind::Syn);
        assert_eq!(interface.hand_over(packet), Ok(true));
        assert_eq!(interface.hand_over(packet), Err(packet));
        assert_eq!((interface.counts.page_exchanges, interface.counts.dropped), (1, 1));
    }
}
