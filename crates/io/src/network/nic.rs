//! A network card: a queue for what arrives, a line out, and interrupts that it holds back to limit their rate.

use std::collections::VecDeque;

use vcpulab_host::{NEVER, Span, Time, VcpuId};

use crate::config::NicConfig;
use crate::tcp::Packet;
use crate::wire::Wire;

/// Largest packet on the line, bytes (Ethernet without its check sequence).
const FRAME_MAX: u32 = 1514;

/// What crossed a NIC since the last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NicCounts {
    /// Interrupts raised.
    pub interrupts: u64,
    /// Packets that the driver took.
    pub received: u64,
    /// Those of them whose connection had ended: they were dropped.
    pub strays: u64,
    /// Packets put on the line.
    pub sent: u64,
    /// Packets from the line that found the queue full and were lost.
    pub dropped: u64,
}

/// A network card and its line.
#[derive(Clone, Debug)]
pub struct Nic {
    /// As configured.
    pub config: NicConfig,
    /// From the clients.
    pub inbound: Wire,
    /// To the clients.
    pub outbound: Wire,
    received: VecDeque<Packet>,
    /// Which vCPU of the driver domain worked at it last.
    pub touched_by: Option<VcpuId>,
    last_interrupt: Time,
    interrupt_at: Time,
    /// A backlog that leaves no room for another packet: as if full slots held the largest packets, ns.
    backlog_max: Span,
    /// What crossed it.
    pub counts: NicCounts,
}

impl Nic {
    /// An idle card.
    pub fn new(config: NicConfig) -> Self {
        let outbound = Wire::new(config.bits_per_s, config.latency_ns);
        let slots = config.ring_slots as i64;
        Nic {
            config,
            backlog_max: slots.saturating_mul(outbound.occupies(FRAME_MAX, 1)),
            inbound: Wire::new(config.bits_per_s, config.latency_ns),
            outbound,
            received: VecDeque::with_capacity(config.ring_slots.min(256)),
            touched_by: None,
            last_interrupt: -config.interrupt_gap_ns,
            interrupt_at: NEVER,
            counts: NicCounts::default(),
        }
    }

    /// Takes a packet in from the line; gives it back if the queue is full.
    pub fn receive(&mut self, now: Time, packet: Packet) -> Result<(), Packet> {
        if self.received.len() == self.config.ring_slots {
            self.counts.dropped += 1;
            return Err(packet);
        }
        self.received.push_back(packet);
        self.want_interrupt(now);
        Ok(())
    }

    /// Hands the driver the oldest packet received.
    pub fn take_received(&mut self) -> Option<Packet> {
        let packet = self.received.pop_front()?;
        self.counts.received += 1;
        Some(packet)
    }

    /// How many packets the driver has not taken yet.
    pub fn waiting(&self) -> usize {
        self.received.len()
    }

    /// Is there room for another packet to send?
    pub fn can_send(&self, now: Time) -> bool {
        self.outbound.backlog(now) < self.backlog_max
    }

    /// Sends a packet. Once it has left, that is worth an interrupt too.
    pub fn send(&mut self, now: Time, packet: Packet) {
        self.counts.sent += 1;
        let left = self.outbound.send(now, packet);
        self.want_interrupt(left);
    }

    fn want_interrupt(&mut self, from: Time) {
        let allowed = from.max(self.last_interrupt + self.config.interrupt_gap_ns);
        self.interrupt_at = self.interrupt_at.min(allowed);
    }

    /// When it interrupts next (`NEVER`: it has nothing to tell).
    pub fn next_interrupt(&self) -> Time {
        self.interrupt_at
    }

    /// It interrupts now. What has not left yet is worth another interrupt later.
    pub fn interrupted(&mut self, now: Time) {
        self.counts.interrupts += 1;
        self.last_interrupt = now;
        self.interrupt_at = NEVER;
        let backlog = self.outbound.backlog(now);
        if backlog > 0 {
            self.want_interrupt(now + backlog);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Owner;
    use crate::tcp::{Kind, Side};

    const CONFIG: NicConfig = NicConfig {
        owner: Owner::Guest { guest: 0, vcpu: 0 },
        bits_per_s: 1_000_000_000,
        interrupt_gap_ns: 250_000,
        latency_ns: 30_000,
        ring_slots: 2,
    };
    const PACKET: Packet = Packet {
        connection: 0,
        to: Side::Called,
        kind: Kind::Syn,
        segments: 1,
        bytes: 0,
        acknowledges: 0,
        space: 0,
    };

    #[test]
    fn interrupts_keep_their_distance() {
        let mut nic = Nic::new(CONFIG);
        nic.receive(10, PACKET).unwrap();
        assert_eq!(nic.next_interrupt(), 10, "the first comes at once");
        nic.interrupted(10);
        assert_eq!(nic.next_interrupt(), NEVER);
        nic.send(20, PACKET);
        assert_eq!(nic.next_interrupt(), 250_010, "the next one waits");
    }

    #[test]
    fn packets_still_on_the_line_at_an_interrupt_are_worth_another() {
        let mut nic = Nic::new(NicConfig { bits_per_s: 1_000_000, ..CONFIG });
        nic.send(0, PACKET);
        nic.send(0, Packet { bytes: FRAME_MAX - 66, ..PACKET });
        let first = nic.next_interrupt();
        nic.interrupted(first);
        assert_eq!((first, nic.next_interrupt()), (720_000, 720_000 + 12_304_000));
    }

    #[test]
    fn a_full_queue_gives_packets_back() {
        let mut nic = Nic::new(CONFIG);
        let taken = [nic.receive(0, PACKET), nic.receive(0, PACKET), nic.receive(0, PACKET)];
        assert_eq!(taken, [Ok(()), Ok(()), Err(PACKET)]);
        assert_eq!((nic.waiting(), nic.counts.dropped), (2, 1));
    }

    #[test]
    fn a_line_with_a_long_backlog_takes_no_more() {
        let mut nic = Nic::new(CONFIG);
        let frame = Packet { bytes: FRAME_MAX - 66, ..PACKET };
        nic.send(0, frame);
        assert!(nic.can_send(0));
        nic.send(0, frame);
        assert!(!nic.can_send(0));
        assert!(nic.can_send(20_000));
    }
}
