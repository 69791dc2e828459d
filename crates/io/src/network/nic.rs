//! A NIC: a queue of packets that have arrived, a link out, and interrupts that it holds back to limit their rate.
//!
//! Nobody sees a packet arrive: what is seen is the interrupt, whose time is known as soon as the packet is under way, and the
//! queue, when a driver looks at it. So packets take no events of their own to arrive, but where the queue may be full.

use std::collections::VecDeque;

use vcpulab_host::{NEVER, Span, Time, VcpuId, WorldContext};

use super::link::Link;
use super::packets::Packets;
use crate::ids::{GuestId, PacketId, SourceId};
use crate::interrupts::Interrupts;

/// Largest packet on the link, bytes (Ethernet without its check sequence).
const FRAME_MAX: u32 = 1514;

/// The owner of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum NicOwner {
    /// A domain, and the number of its vCPU that takes the NIC's interrupts.
    Guest { guest: GuestId, vcpu: u32 },
    /// The hypervisor, and its cost of a packet received, ns.
    Hypervisor { receive_ns: Span },
    /// The kernel of a host whose own threads are the vCPUs of this domain: its cost of a packet received, ns, and the pCPUs
    /// that take the NIC's interrupts. It leaves each packet to the thread of its guest.
    Host { guest: GuestId, receive_ns: Span, interrupts: Interrupts },
}

/// A NIC with its link and its queues, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicConfig {
    /// Owner of the NIC.
    pub owner: NicOwner,
    /// Rate of its link in each direction.
    pub bits_per_s: i64,
    /// Least time between two interrupts, ns.
    pub interrupt_gap_ns: Span,
    /// Time of a packet between client and NIC, one way, besides that on the link, ns.
    pub latency_ns: Span,
    /// Packets that its queues hold in each direction.
    pub ring_slots: usize,
}

/// Traffic of a NIC since the last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NicCounts {
    /// Interrupts raised.
    pub interrupts: u64,
    /// Packets that its driver took.
    pub received: u64,
    /// Packets among them whose connection had ended: they were dropped.
    pub strays: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that found the queue full and were lost.
    pub dropped: u64,
}

/// The sources of a NIC's events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NicSources {
    pub interrupt: SourceId,
    pub inbound: SourceId,
    pub outbound: SourceId,
}

/// A NIC and its link.
#[derive(Clone, Debug)]
pub(crate) struct Nic {
    /// Configuration of the NIC.
    pub config: NicConfig,
    sources: NicSources,
    /// From the clients.
    inbound: Link,
    /// To the clients.
    pub outbound: Link,
    received: VecDeque<PacketId>,
    /// The vCPU of the driver domain that worked at it last.
    touched_by: Option<VcpuId>,
    last_interrupt: Time,
    interrupt_at: Time,
    /// Backlog that leaves no room for another packet, ns: that of full slots with the largest packets.
    backlog_max: Span,
    /// Traffic of the NIC.
    pub counts: NicCounts,
}

impl Nic {
    /// An idle NIC.
    pub fn new(config: NicConfig, sources: NicSources) -> Self {
        let outbound = Link::new(config.bits_per_s, config.latency_ns);
        let slots = config.ring_slots as i64;
        Nic {
            config,
            sources,
            backlog_max: outbound.occupies(FRAME_MAX, 1).saturating_mul(slots),
            inbound: Link::new(config.bits_per_s, config.latency_ns),
            outbound,
            received: VecDeque::new(),
            touched_by: None,
            last_interrupt: Time::ZERO - config.interrupt_gap_ns,
            interrupt_at: NEVER,
            counts: NicCounts::default(),
        }
    }

    /// Sends it a packet. True: it is the next one to arrive.
    pub fn send_inbound(&mut self, now: Time, packet: PacketId, packets: &Packets) -> bool {
        self.inbound.send(now, packet, packets);
        self.inbound.packets() == 1
    }

    /// The time at which the next packet arrives, or has arrived that is not received yet (`NEVER`: there is none).
    pub fn next_arrival(&self) -> Time {
        self.inbound.next_arrival()
    }

    /// Removes a packet from the link that has arrived before `end`, with the time of its arrival: to be received.
    pub fn take_before(&mut self, end: Time) -> Option<(Time, PacketId)> {
        self.inbound.take_before(end)
    }

    /// Takes a packet in from the link that has arrived at `now`; gives it back if the queue is full.
    pub fn receive(&mut self, now: Time, packet: PacketId) -> Result<(), PacketId> {
        if self.received.len() == self.config.ring_slots {
            self.counts.dropped += 1;
            return Err(packet);
        }
        self.received.push_back(packet);
        self.want_interrupt(now);
        Ok(())
    }

    /// Removes the oldest packet received, for the driver.
    pub fn take_received(&mut self) -> Option<PacketId> {
        let packet = self.received.pop_front()?;
        self.counts.received += 1;
        Some(packet)
    }

    /// Number of packets that the driver has not taken yet.
    pub fn waiting(&self) -> usize {
        self.received.len()
    }

    /// Whether there is room for another packet to send.
    pub fn can_send(&self, now: Time) -> bool {
        self.outbound.backlog(now) < self.backlog_max
    }

    /// Sends a packet. Once it has left, that is worth an interrupt too. True: that is the next one.
    pub fn send(&mut self, now: Time, packet: PacketId, packets: &Packets) -> bool {
        self.counts.sent += 1;
        let left = self.outbound.send(now, packet, packets);
        let before = self.interrupt_at;
        self.want_interrupt(left);
        self.interrupt_at < before
    }

    /// Sets the timer of its next interrupt.
    pub fn arm_interrupt(&self, ctx: &mut WorldContext<'_>) {
        self.sources.interrupt.set(ctx, self.next_interrupt());
    }

    /// Whether the queue may be full for one of the packets under way. A loss has its consequences at once, and no interrupt:
    /// each arrival takes an event meanwhile.
    pub fn may_lose(&self) -> bool {
        self.received.len() + self.inbound.packets() > self.config.ring_slots
    }

    /// Sets the timer of the next packet that arrives, if arrivals take events.
    pub fn arm_inbound(&self, ctx: &mut WorldContext<'_>) {
        let arrival = if self.may_lose() { self.inbound.next_arrival() } else { NEVER };
        self.sources.inbound.set(ctx, arrival);
    }

    /// Sets the timer of the next packet that arrives at the switch.
    pub fn arm_outbound(&self, ctx: &mut WorldContext<'_>) {
        self.sources.outbound.set(ctx, self.outbound.next_arrival());
    }

    /// Notes that a vCPU of the driver domain works at it. True: another did before.
    pub fn touch(&mut self, vcpu: VcpuId) -> bool {
        self.touched_by.replace(vcpu).is_some_and(|last| last != vcpu)
    }

    /// The source of arrivals, in whose place among simultaneous events packets arrive.
    pub fn arrivals(&self) -> SourceId {
        self.sources.inbound
    }

    /// The time of the interrupt for what happens at `from`.
    fn interrupt_for(&self, from: Time) -> Time {
        from.max(self.last_interrupt + self.config.interrupt_gap_ns)
    }

    fn want_interrupt(&mut self, from: Time) {
        self.interrupt_at = self.interrupt_at.min(self.interrupt_for(from));
    }

    /// Whether the NIC interrupts now for past events, rather than for packets still on the link.
    pub fn interrupts(&self, now: Time) -> bool {
        self.interrupt_at <= now
    }

    /// Time of the next interrupt (`NEVER`: there is nothing to report).
    fn next_interrupt(&self) -> Time {
        match self.inbound.next_arrival() {
            NEVER => self.interrupt_at,
            _ if self.may_lose() => self.interrupt_at,
            arrival => self.interrupt_at.min(self.interrupt_for(arrival)),
        }
    }

    /// Interrupts now. Packets that have not left yet are worth another interrupt later, as are those that arrive later.
    pub fn interrupted(&mut self, now: Time) {
        self.counts.interrupts += 1;
        self.last_interrupt = now;
        self.interrupt_at = NEVER;
        let backlog = self.outbound.backlog(now);
        if backlog > Span::ZERO {
            self.want_interrupt(now + backlog);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::tcp::{Kind, Packet, Side};
    use vcpulab_guest::ConnectionId;

    const CONFIG: NicConfig = NicConfig {
        owner: NicOwner::Guest { guest: GuestId(0), vcpu: 0 },
        bits_per_s: 1_000_000_000,
        interrupt_gap_ns: Span::from_ns(250_000),
        latency_ns: Span::from_ns(30_000),
        ring_slots: 2,
    };
    const SOURCES: NicSources =
        NicSources { interrupt: SourceId(0), inbound: SourceId(1), outbound: SourceId(2) };
    const PACKET: Packet = Packet {
        connection: ConnectionId(0),
        to: Side::Called,
        kind: Kind::Syn,
        segments: 1,
        bytes: 0,
        acknowledges: 0,
        space: 0,
        retransmissions: 0,
        leg: None,
    };

    /// A NIC, and a packet.
    fn with(config: NicConfig, packet: Packet) -> (Nic, Packets, PacketId) {
        let mut packets = Packets::default();
        let packet = packets.add(packet);
        (Nic::new(config, SOURCES), packets, packet)
    }

    #[test]
    fn interrupts_keep_their_distance() {
        let (mut nic, packets, packet) = with(CONFIG, PACKET);
        nic.receive(Time::from_ns(10), packet).unwrap();
        assert_eq!(nic.next_interrupt(), Time::from_ns(10), "the first comes at once");
        nic.interrupted(Time::from_ns(10));
        assert_eq!(nic.next_interrupt(), NEVER);
        nic.send(Time::from_ns(20), packet, &packets);
        assert_eq!(nic.next_interrupt(), Time::from_ns(250_010), "the next one waits");
    }

    #[test]
    fn packets_still_on_the_link_at_an_interrupt_are_worth_another() {
        let (mut nic, mut packets, small) = with(NicConfig { bits_per_s: 1_000_000, ..CONFIG }, PACKET);
        let large = packets.add(Packet { bytes: FRAME_MAX - 66, ..PACKET });
        nic.send(Time::ZERO, small, &packets);
        nic.send(Time::ZERO, large, &packets);
        let first = nic.next_interrupt();
        nic.interrupted(first);
        assert_eq!(
            (first, nic.next_interrupt()),
            (Time::from_ns(720_000), Time::from_ns(720_000 + 12_304_000))
        );
    }

    #[test]
    fn a_full_queue_gives_packets_back() {
        let (mut nic, _, packet) = with(CONFIG, PACKET);
        let taken = [(); 3].map(|()| nic.receive(Time::ZERO, packet));
        assert_eq!(taken, [Ok(()), Ok(()), Err(packet)]);
        assert_eq!((nic.waiting(), nic.counts.dropped), (2, 1));
    }

    #[test]
    fn a_packet_under_way_interrupts_when_it_arrives_unless_it_may_be_lost() {
        let (mut nic, packets, packet) = with(CONFIG, PACKET);
        let first = [(); 2].map(|()| nic.send_inbound(Time::ZERO, packet, &packets));
        assert_eq!(first, [true, false]);
        let arrival = nic.next_arrival();
        assert_eq!((nic.next_interrupt(), nic.may_lose()), (arrival, false));
        for _ in 0..2 {
            let (arrival, packet) = nic.take_before(Time::from_ns(50_000)).unwrap();
            nic.receive(arrival, packet).unwrap();
        }
        nic.interrupted(arrival);
        nic.send_inbound(Time::from_ns(50_000), packet, &packets);
        assert_eq!((nic.next_interrupt(), nic.may_lose()), (NEVER, true), "its queue is full");
        nic.take_received().unwrap();
        assert_eq!(nic.next_interrupt(), arrival + CONFIG.interrupt_gap_ns);
    }

    #[test]
    fn a_link_with_a_long_backlog_takes_no_more() {
        let (mut nic, packets, frame) = with(CONFIG, Packet { bytes: FRAME_MAX - 66, ..PACKET });
        nic.send(Time::ZERO, frame, &packets);
        assert!(nic.can_send(Time::ZERO));
        nic.send(Time::ZERO, frame, &packets);
        assert!(!nic.can_send(Time::ZERO));
        assert!(nic.can_send(Time::from_ns(20_000)));
    }
}
