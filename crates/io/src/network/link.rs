//! A direction of a link: packets are sent one after another at its rate, and arrive a latency later.

use std::collections::VecDeque;

use vcpulab_host::{NEVER, Span, Time};

use super::packets::Packets;
use crate::ids::PacketId;

/// Occupancy of an Ethernet link by a frame besides its headers and data, bytes: preamble, check sequence, and the gap before
/// the next one (IEEE 802.3: 8, 4 and 12).
const FRAMING_BYTES: u32 = 24;

/// A link in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    bits_per_s: i64,
    latency: Span,
    /// The time from which it is free again.
    free_at: Time,
    /// The packets under way, in order of arrival.
    under_way: VecDeque<(Time, PacketId)>,
}

impl Link {
    /// A free link.
    pub fn new(bits_per_s: i64, latency: Span) -> Self {
        Link { bits_per_s, latency, free_at: Time::ZERO, under_way: VecDeque::new() }
    }

    /// Time for which `bytes`, headers included, in this number of frames occupy the link, ns; at least 1, so that time goes
    /// on however fast it is.
    pub fn occupies(&self, bytes: u32, frames: u32) -> Span {
        let bytes = i64::from(bytes) + i64::from(frames) * i64::from(FRAMING_BYTES);
        Span::from_ns((bytes * 8 * 1_000_000_000 / self.bits_per_s).max(1))
    }

    /// Sends a packet now; returns the time at which it has left.
    pub fn send(&mut self, now: Time, id: PacketId, packets: &Packets) -> Time {
        let packet = &packets[id];
        self.free_at = self.free_at.max(now) + self.occupies(packet.link_bytes(), packet.segments);
        self.under_way.push_back((self.free_at + self.latency, id));
        self.free_at
    }

    /// Time for which a packet enqueued now would wait, ns.
    pub fn backlog(&self, now: Time) -> Span {
        (self.free_at - now).max(Span::ZERO)
    }

    /// Arrival of the next packet (`NEVER`: none is under way).
    pub fn next_arrival(&self) -> Time {
        self.under_way.front().map_or(NEVER, |&(time, _)| time)
    }

    /// Number of packets under way, or arrived and not taken.
    pub fn packets(&self) -> usize {
        self.under_way.len()
    }

    /// Removes a packet that has arrived.
    pub fn take_arrived(&mut self, now: Time) -> Option<PacketId> {
        self.take_before(now + Span::from_ns(1)).map(|(_, packet)| packet)
    }

    /// Removes a packet that has arrived before `end`, with the time of its arrival.
    pub fn take_before(&mut self, end: Time) -> Option<(Time, PacketId)> {
        self.under_way.pop_front_if(|(arrival, _)| *arrival < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcpulab_guest::ConnectionId;

    use crate::network::tcp::{Kind, Packet, SEGMENT_BYTES, Side};

    #[test]
    fn a_link_of_100_mbit_carries_94_of_data() {
        let mut link = Link::new(100_000_000, Span::ZERO);
        let (bytes, segments) = (SEGMENT_BYTES, 1);
        let packet = Packet {
            connection: ConnectionId(1),
            to: Side::Called,
            kind: Kind::Data,
            segments,
            bytes,
            acknowledges: 0,
            space: 0,
            retransmissions: 0,
            leg: None,
        };
        let mut packets = Packets::default();
        let packet = packets.add(packet);
        let sent_ns =
            (0..1000).map(|_| link.send(Time::ZERO, packet, &packets)).last().expect("some are sent").ns();
        assert_eq!(i64::from(bytes) * 8 * 1000 * 10_000 / sent_ns, 941, "tenths of Mbit/s, as netperf finds");
    }

    #[test]
    fn packets_queue_for_the_link_and_arrive_a_latency_later() {
        let mut link = Link::new(1_000_000_000, Span::from_us(50));
        let packet = Packet {
            connection: ConnectionId(1),
            to: Side::Called,
            kind: Kind::Syn,
            segments: 1,
            bytes: 910,
            acknowledges: 0,
            space: 0,
            retransmissions: 0,
            leg: None,
        };
        let mut packets = Packets::default();
        let [first, second] = [packets.add(packet), packets.add(packet)];
        assert_eq!(link.send(Time::ZERO, first, &packets), Time::from_ns(8_000));
        assert_eq!(link.send(Time::ZERO, second, &packets), Time::from_ns(16_000));
        assert_eq!(link.backlog(Time::from_ns(4_000)), Span::from_us(12));
        assert_eq!(link.next_arrival(), Time::from_ns(58_000));
        assert_eq!(link.take_arrived(Time::from_ns(57_999)), None);
        assert_eq!(link.take_arrived(Time::from_ns(66_000)), Some(first));
        assert_eq!(link.take_arrived(Time::from_ns(66_000)), Some(second));
        assert_eq!(link.next_arrival(), NEVER);
    }
}
