//! TCP, in the detail that CPU scheduling feels: packets, windows, acknowledgements, set-up and teardown.
//!
//! Segments carry sizes, not contents. Nothing arrives out of order; a packet that finds a full queue is retransmitted later. A page of
//! 10 KB over a connection of its own takes sixteen packets: SYN, ACK, GET, an acknowledgement for every two segments and FIN
//! in; SYN-ACK, seven segments and the last ACK out. (This count fits the I/O counts of Cherkasova, Gupta and Vahdat
//! 2007, Tables 1 and 2: 32.9 for each request, two for each packet.)

use vcpulab_guest::{AppId, ConnectionId, TaskId};
use vcpulab_host::{Span, Time};

use crate::ids::{ClientId, ClientMachineId, GuestId, LegId};

/// Most data in one segment, bytes (Ethernet, with time stamps).
pub const SEGMENT_BYTES: u32 = 1448;
/// Link, IP and TCP headers with time stamps, bytes.
pub const HEADER_BYTES: u32 = 66;
/// Most bytes under way: a receive window of 64 KB, the most without window scaling (RFC 9293, section 3.1).
pub const WINDOW_MAX: u32 = 65_535;
/// Memory of a packet in a socket's buffer whatever its size, bytes: small ones fill it with little data (half a page, as
/// Linux accounts for a frame's buffer).
const BUFFER_PER_PACKET: u32 = 2048;
/// A receiver's socket buffer, bytes: Linux's default maximum is 85 to 170 KB, of which half is offered as window.
const RECEIVE_BUFFER: u32 = 2 * WINDOW_MAX;
/// Bytes that an application may enqueue ahead of the network, unless it says otherwise (Linux's default send buffer: 16 KB,
/// grown to 64 KB and more).
const SEND_BUFFER: u32 = 65_536;
/// The estimate of the peer's segment size is not below this, bytes (RFC 1122's default segment size).
const SEGMENT_ESTIMATE_MIN: u32 = 536;
/// Time until a SYN without an answer is retransmitted, ns; the next wait is twice as long, and so on (RFC 1122, section
/// 4.2.3.1: three seconds).
pub const SYN_TIMEOUT: Span = Span::from_secs(3);
/// SYNs that are sent before their caller gives up (Windows XP: TcpMaxConnectRetransmissions is 2, so after 21 s).
pub const SYNS_MAX: u32 = 3;
/// Time until a lost packet is sent again, ns (the least retransmission time-out of common TCPs). Each further loss of it
/// doubles the time (RFC 6298, section 5.5).
const RETRANSMIT_AFTER: Span = Span::from_ms(200);
/// Longest time until a packet is sent again, ns (Linux: `TCP_RTO_MAX`).
const RETRANSMIT_AFTER_MAX: Span = Span::from_secs(120);
/// Times that a packet is sent again before its sender gives the connection up (Linux: `tcp_retries2`; 924.6 s in all).
const RETRANSMISSIONS_MAX: u8 = 15;
/// Times that a SYN-ACK is sent again before the called end forgets the connection (Linux: `tcp_synack_retries`).
const SYN_ACKS_MAX: u8 = 5;
/// Time for which a service waits for a request that does not come before it closes the connection, ns (Apache httpd 2.4:
/// `TimeOut`; nginx: `client_header_timeout`).
pub const REQUEST_TIMEOUT: Span = Span::from_secs(60);
/// Longest delay of an acknowledgement, ns (Linux: 40 ms; RFC 1122 allows 500).
pub const DELAYED_ACK: Span = Span::from_ms(40);

/// An end of a connection: the one that began it, or the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The end that began the connection.
    Caller = 0,
    /// The end that was called.
    Called = 1,
}

impl Side {
    /// The opposite one.
    pub fn other(self) -> Side {
        match self {
            Side::Caller => Side::Called,
            Side::Called => Side::Caller,
        }
    }
}

/// The state of a connection at the end that was called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The SYN is on its way, or the connection is over.
    Closed,
    /// The SYN is answered: the set-up is under way.
    HalfOpen,
    /// The connection is in the backlog.
    Backlog,
    /// The connection is served.
    Served,
}

/// The kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The caller begins.
    Syn,
    /// The called end accepts.
    SynAck,
    /// The called end has no room.
    Refused,
    /// An acknowledgement without data.
    Ack,
    /// Data, which acknowledges too.
    Data,
    /// The caller closes.
    Fin,
    /// The called end confirms that.
    FinAck,
    /// The caller gives up.
    Reset,
}

/// A packet: a segment, or several that a NIC will cut or has put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The connection it belongs to.
    pub connection: ConnectionId,
    /// The end that it goes to.
    pub to: Side,
    /// Kind of the packet.
    pub kind: Kind,
    /// Number of its segments on the link.
    pub segments: u32,
    /// Data of the packet, bytes.
    pub bytes: u32,
    /// Data that it acknowledges, bytes.
    pub acknowledges: u32,
    /// Receive window of its sender, bytes.
    pub space: u32,
    /// Times that it was lost and sent again; of a reset: those of the packet that it answers.
    pub retransmissions: u8,
    /// The leg of the request's path that it is on, if that is followed.
    pub leg: Option<LegId>,
}

impl Packet {
    /// Size of the packet on the link, bytes.
    pub fn link_bytes(&self) -> u32 {
        self.bytes + self.segments * HEADER_BYTES
    }

    /// Time until it is sent again after its loss, ns.
    pub fn retransmit_after(&self) -> Span {
        let first = if self.kind == Kind::SynAck { SYN_TIMEOUT } else { RETRANSMIT_AFTER };
        // Beyond the tenth the longest time is reached.
        (first * (1 << self.retransmissions.min(10))).min(RETRANSMIT_AFTER_MAX)
    }

    /// The packet for a retransmission; `None`: its sender gives the connection up.
    pub fn again(self) -> Option<Packet> {
        let most = if self.kind == Kind::SynAck { SYN_ACKS_MAX } else { RETRANSMISSIONS_MAX };
        let more = self.retransmissions < most;
        more.then(|| Packet { retransmissions: self.retransmissions + 1, ..self })
    }
}

/// An end of a connection.
#[derive(Clone, Copy, Debug)]
struct End {
    // It sends:
    queued: u64,
    under_way: u32,
    window: u32,
    peer_space: u32,
    segment: u32,
    send_buffer: u32,
    /// Whether data that do not fill a segment wait until all before them are acknowledged (Nagle's algorithm, RFC 896).
    fills: bool,
    // It receives:
    unacknowledged: u32,
    peer_segment: u32,
    unread: u32,
    unread_packets: u32,
    offered: u32,
    ack_due: bool,
    /// Bytes that the message being received still lacks.
    lacks: u64,
}

impl End {
    fn new(initial_segments: u32) -> Self {
        End {
            queued: 0,
            under_way: 0,
            window: initial_segments.saturating_mul(SEGMENT_BYTES).min(WINDOW_MAX),
            peer_space: WINDOW_MAX,
            segment: SEGMENT_BYTES,
            send_buffer: SEND_BUFFER,
            fills: false,
            unacknowledged: 0,
            peer_segment: SEGMENT_ESTIMATE_MIN,
            unread: 0,
            unread_packets: 0,
            offered: WINDOW_MAX,
            ack_due: false,
            lacks: 0,
        }
    }

    /// Receive window of this end, bytes.
    fn space(&self) -> u32 {
        let taken = self.unread_packets.saturating_mul(BUFFER_PER_PACKET).max(self.unread);
        (RECEIVE_BUFFER.saturating_sub(taken) / 2).min(WINDOW_MAX)
    }
}

/// The consequences of data that arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrival {
    /// A message is complete.
    pub complete: bool,
    /// An acknowledgement should go back now.
    pub acknowledge: bool,
    /// An acknowledgement should go back soon, unless data does before.
    pub acknowledge_later: bool,
}

/// The owner of an end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Party {
    /// A user of a client outside.
    Client { client: ClientId, user: u32 },
    /// A machine outside that takes everything.
    Outside,
    /// A task in a guest.
    Task { guest: GuestId, task: TaskId },
    /// A service in a guest: an application.
    Service { guest: GuestId, app: AppId },
}

impl Party {
    /// The guest that it is in.
    pub fn guest(self) -> Option<GuestId> {
        match self {
            Party::Client { .. } | Party::Outside => None,
            Party::Task { guest, .. } | Party::Service { guest, .. } => Some(guest),
        }
    }
}

/// A sender of a stream that waits for room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sender {
    /// A task of a guest.
    Task(TaskId),
    /// The user of a client that has the stream.
    User,
}

/// A connection with both its ends.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// The owners of its ends.
    pub parties: [Party; 2],
    /// Begin of the exchange at hand.
    pub asked_at: Time,
    /// Time from there until there was a connection to ask with, ns; `None`: there is none yet.
    pub connect_ns: Option<Span>,
    /// Time from there until the first data of the answer, ns; `None`: none has come.
    pub latency_ns: Option<Span>,
    /// The client machine that its caller is on, if it is on one.
    pub machine: Option<ClientMachineId>,
    /// Class of the request at hand.
    pub class: u32,
    /// Size of the answer that the request asks for, bytes.
    pub asks: u32,
    /// Size of the request, bytes.
    pub request_bytes: u32,
    /// State of the connection at the called end.
    pub stage: Stage,
    /// Whether a request came while it was in the backlog.
    pub asked: bool,
    /// SYNs lost so far.
    pub syns_lost: u32,
    /// Whether the last SYN was lost, and the next is not yet sent.
    pub syn_waits: bool,
    /// Whether the caller has given the connection up and forgotten it: packets that still reach the caller are
    /// answered with a reset.
    pub abandoned: bool,
    /// Requests that have reached the called end.
    pub requests: u32,
    /// Whether the connection is closed after the current exchange.
    pub closes: bool,
    /// Whether the connection carries streams, from which applications read pieces of any size, rather than messages.
    pub streams: bool,
    /// The task that waits at each end to read, and its number of bytes.
    pub readers: [Option<(TaskId, u32)>; 2],
    /// The sender that waits at each end for room.
    pub senders: [Option<Sender>; 2],
    ends: [End; 2],
    answered: bool,
}

impl Connection {
    /// A connection that is about to begin.
    ///
    /// Each end may have `initial_segments` under way before the first acknowledgement.
    pub fn new(parties: [Party; 2], now: Time, initial_segments: u32) -> Self {
        Connection {
            parties,
            asked_at: now,
            connect_ns: None,
            latency_ns: None,
            machine: None,
            class: 0,
            asks: 0,
            request_bytes: 0,
            stage: Stage::Closed,
            asked: false,
            syns_lost: 0,
            syn_waits: false,
            abandoned: false,
            requests: 0,
            closes: false,
            streams: false,
            readers: [None; 2],
            senders: [None; 2],
            ends: [End::new(initial_segments); 2],
            answered: false,
        }
    }

    /// Makes that end expect a message of this size.
    pub fn expect(&mut self, side: Side, bytes: u64) {
        self.ends[side as usize].lacks = bytes;
        self.answered = false;
    }

    /// Whether the answer to the request at hand is complete.
    pub fn is_answered(&self) -> bool {
        self.answered
    }

    /// Enqueues bytes of an end's application; written in pieces smaller than a segment, they travel as such (Nagle's
    /// algorithm is off).
    pub fn enqueue(&mut self, from: Side, bytes: u32) {
        let end = &mut self.ends[from as usize];
        (end.segment, end.fills) = (bytes.clamp(1, SEGMENT_BYTES), false);
        end.queued += u64::from(bytes);
    }

    /// Enqueues bytes of a stream, which fill whole segments however small the pieces are.
    pub fn enqueue_stream(&mut self, from: Side, bytes: u32) {
        let end = &mut self.ends[from as usize];
        (end.segment, end.fills) = (SEGMENT_BYTES, true);
        end.queued += u64::from(bytes);
    }

    /// Sets the send buffer of an end's socket, bytes.
    pub fn set_send_buffer(&mut self, of: Side, bytes: u32) {
        self.ends[of as usize].send_buffer = bytes;
    }

    /// The send buffer of an end's socket: most that it keeps until it is acknowledged, bytes.
    pub fn send_buffer(&self, of: Side) -> u64 {
        self.ends[of as usize].send_buffer.into()
    }

    /// Bytes that an end's application has enqueued and that have not been acknowledged.
    pub fn outstanding(&self, from: Side) -> u64 {
        let end = &self.ends[from as usize];
        end.queued + u64::from(end.under_way)
    }

    /// An end's next packet of data, if the windows let it; of at most `segments_max` segments, which the NIC cuts.
    pub fn next_data(&mut self, id: ConnectionId, from: Side, segments_max: u32) -> Option<Packet> {
        let end = &mut self.ends[from as usize];
        let whole = u64::from(end.segment) * u64::from(segments_max.max(1));
        let bytes = end.queued.min(whole) as u32;
        let window = end.window.min(end.send_buffer).max(end.segment).min(end.peer_space);
        // Of what would not fit into the window, as many whole segments as do.
        let fits = (window.saturating_sub(end.under_way) / end.segment) * end.segment;
        let bytes = if end.under_way + bytes <= window { bytes } else { bytes.min(fits) };
        // Of what is not a whole number of segments the rest waits.
        let bytes = if end.fills && (bytes >= end.segment || end.under_way > 0) {
            bytes - bytes % end.segment
        } else {
            bytes
        };
        if bytes == 0 {
            return None;
        }
        let segments = bytes.div_ceil(end.segment);
        end.queued -= u64::from(bytes);
        end.under_way += bytes;
        Some(Packet { bytes, segments, ..self.packet(id, from, Kind::Data) })
    }

    /// A packet without data. It acknowledges all that has come.
    pub fn packet(&mut self, connection: ConnectionId, from: Side, kind: Kind) -> Packet {
        let end = &mut self.ends[from as usize];
        let acknowledges = std::mem::take(&mut end.unacknowledged);
        end.offered = end.space();
        Packet {
            connection,
            to: from.other(),
            kind,
            segments: 1,
            bytes: 0,
            acknowledges,
            space: end.offered,
            retransmissions: 0,
            leg: None,
        }
    }

    /// The packet that the called end sends again by its own timers as long as it hears nothing: it has the acknowledgement of
    /// none since; `None`: it waits for nothing.
    pub fn unacknowledged(&mut self, id: ConnectionId, retransmissions: u8) -> Option<Packet> {
        let called = &self.ends[Side::Called as usize];
        let (kind, bytes) = match (self.stage, called.under_way.min(called.segment)) {
            (Stage::HalfOpen, _) => (Kind::SynAck, 0),
            (_, 0) => return None,
            (_, bytes) => (Kind::Data, bytes),
        };
        Some(Packet { bytes, retransmissions, ..self.packet(id, Side::Called, kind) })
    }

    /// Whether a request is on its way that is not complete at the called end.
    pub fn lacks_request(&self) -> bool {
        self.ends[Side::Called as usize].lacks > 0
    }

    /// Takes an acknowledgement of the other end; the window grows with it (slow start, RFC 5681).
    pub fn acknowledged(&mut self, side: Side, packet: &Packet) {
        let end = &mut self.ends[side as usize];
        end.under_way = end.under_way.saturating_sub(packet.acknowledges);
        end.window = (end.window + packet.acknowledges.min(SEGMENT_BYTES)).min(WINDOW_MAX);
        end.peer_space = packet.space;
    }

    /// Takes data that reach an end. They are acknowledged once more than one full segment has come, and at once only if the window that
    /// is offered with it need not shrink; otherwise when the application has taken some (Linux's rule). So an application
    /// that is late, or small packets that fill the buffer, make for fewer acknowledgements.
    pub fn receive(&mut self, side: Side, packet: &Packet) -> Arrival {
        let end = &mut self.ends[side as usize];
        end.unacknowledged += packet.bytes;
        end.peer_segment = end.peer_segment.max(packet.bytes / packet.segments.max(1));
        let mut arrival = Arrival::default();
        if self.streams {
            end.unread += packet.bytes;
            end.unread_packets += 1;
        } else {
            arrival.complete = end.lacks > 0 && end.lacks <= u64::from(packet.bytes);
            end.lacks = end.lacks.saturating_sub(u64::from(packet.bytes));
            self.answered = arrival.complete && side == Side::Caller;
        }
        arrival.acknowledge = end.unacknowledged > end.peer_segment && end.space() >= end.offered;
        arrival.acknowledge_later = !arrival.acknowledge && !std::mem::replace(&mut end.ack_due, true);
        arrival
    }

    /// Ends the delay of an acknowledgement; true if there is anything to acknowledge.
    pub fn ack_is_due(&mut self, side: Side) -> bool {
        let end = &mut self.ends[side as usize];
        end.ack_due = false;
        end.unacknowledged > 0
    }

    /// Bytes that have come and that the application has not read.
    pub fn unread(&self, side: Side) -> u32 {
        self.ends[side as usize].unread
    }

    /// Reads bytes for the application. True: an acknowledgement should go back, because of data or of the room made.
    pub fn read(&mut self, side: Side, bytes: u32) -> bool {
        let end = &mut self.ends[side as usize];
        let packets = u64::from(end.unread_packets) * u64::from(bytes.min(end.unread));
        end.unread_packets -= (packets / u64::from(end.unread.max(1))) as u32;
        end.unread -= bytes.min(end.unread);
        if end.unread == 0 {
            end.unread_packets = 0;
        }
        let reopens = end.offered < 2 * SEGMENT_BYTES && end.space() >= 2 * SEGMENT_BYTES;
        end.unacknowledged > end.peer_segment || reopens
    }

    /// Greatest number of bytes that an application can wait for at once: more never fits.
    pub fn readable_max() -> u32 {
        WINDOW_MAX / 2
    }

    /// Shrinks the window after the loss of a packet of this end (RFC 5681). True: enough are under way that the peer's
    /// answers tell of it soon.
    pub fn shrink(&mut self, from: Side) -> bool {
        let end = &mut self.ends[from as usize];
        end.window = (end.window / 2).max(2 * SEGMENT_BYTES);
        end.under_way >= 4 * end.segment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::connections::Connections;

    const PARTIES: [Party; 2] = [Party::Outside, Party::Service { guest: GuestId(0), app: AppId(0) }];

    /// Lets one end send a message of `bytes`, every packet delivered at once; returns data packets and acknowledgements.
    fn transfer(bytes: u64, segments_max: u32) -> (u32, u32) {
        let mut connections = Connections::new(4);
        let number = connections.open(PARTIES, Time::ZERO);
        let connection = connections.get_mut(number).unwrap();
        connection.expect(Side::Caller, bytes);
        connection.enqueue(Side::Called, bytes as u32);
        let (mut data, mut acks) = (0, 0);
        let mut under_way = std::collections::VecDeque::new();
        loop {
            while let Some(packet) = connection.next_data(number, Side::Called, segments_max) {
                data += 1;
                under_way.push_back(packet);
            }
            let packet = under_way.pop_front().expect("a transfer does not stall");
            let arrival = connection.receive(Side::Caller, &packet);
            if arrival.complete {
                assert!(under_way.is_empty());
                return (data, acks);
            }
            if arrival.acknowledge {
                acks += 1;
                let ack = connection.packet(number, Side::Caller, Kind::Ack);
                connection.acknowledged(Side::Called, &ack);
            }
        }
    }

    #[test]
    fn a_packet_lost_again_and_again_is_given_up_in_the_end() {
        let mut connections = Connections::new(4);
        let number = connections.open(PARTIES, Time::ZERO);
        let mut waits = |kind| {
            let first = connections.get_mut(number).unwrap().packet(number, Side::Called, kind);
            std::iter::successors(Some(first), |packet| packet.again())
                .map(|packet| packet.retransmit_after())
        };
        let data: Vec<Span> = waits(Kind::Data).collect();
        assert_eq!(data[..3], [200, 400, 800].map(Span::from_ms));
        assert_eq!(data.iter().map(|span| span.ns()).sum::<i64>(), 924_600_000_000, "as Linux documents it");
        assert_eq!(waits(Kind::SynAck).collect::<Vec<_>>(), [3, 6, 12, 24, 48, 96].map(Span::from_secs));
    }

    #[test]
    fn a_page_of_10_kb_takes_seven_segments_and_three_acknowledgements() {
        assert_eq!(transfer(10_000, 1), (7, 3));
    }

    #[test]
    fn no_size_stalls() {
        for segments in 1..400 {
            let (data, acks) = transfer(segments * u64::from(SEGMENT_BYTES), 1);
            assert_eq!(u64::from(data), segments);
            assert_eq!(acks, (data - 1) / 2);
        }
        assert!(
            transfer(10_000_000, 44).0 < 10_000_000 / SEGMENT_BYTES / 10,
            "a NIC that cuts packets takes fewer"
        );
    }

    #[test]
    fn a_reader_that_is_late_closes_the_window_and_opens_it_again() {
        let mut connections = Connections::new(4);
        let number = connections.open(PARTIES, Time::ZERO);
        let connection = connections.get_mut(number).unwrap();
        connection.streams = true;
        connection.enqueue(Side::Caller, 10_000_000);
        let mut sent = 0;
        loop {
            let Some(packet) = connection.next_data(number, Side::Caller, 1) else {
                if !connection.ack_is_due(Side::Called) {
                    break;
                }
                let ack = connection.packet(number, Side::Called, Kind::Ack);
                connection.acknowledged(Side::Caller, &ack);
                continue;
            };
            sent += packet.bytes;
            let arrival = connection.receive(Side::Called, &packet);
            if arrival.acknowledge {
                let ack = connection.packet(number, Side::Called, Kind::Ack);
                connection.acknowledged(Side::Caller, &ack);
            }
        }
        assert!((30_000..2 * RECEIVE_BUFFER).contains(&sent), "{sent}");
        assert!(connection.read(Side::Called, connection.unread(Side::Called)), "the window opens");
        let ack = connection.packet(number, Side::Called, Kind::Ack);
        connection.acknowledged(Side::Caller, &ack);
        assert!(connection.next_data(number, Side::Caller, 1).is_some());
    }

    #[test]
    fn small_pieces_of_a_stream_fill_segments_and_pushed_ones_do_not() {
        let packets = |push: bool| {
            let mut connections = Connections::new(4);
            let number = connections.open(PARTIES, Time::ZERO);
            let connection = connections.get_mut(number).unwrap();
            connection.streams = true;
            let mut sizes = Vec::new();
            for _ in 0..20 {
                match push {
                    true => connection.enqueue(Side::Caller, 200),
                    false => connection.enqueue_stream(Side::Caller, 200),
                }
                sizes.extend(connection.next_data(number, Side::Caller, 1).map(|packet| packet.bytes));
            }
            let acknowledges = sizes.iter().sum();
            let ack = Packet { acknowledges, ..connection.packet(number, Side::Called, Kind::Ack) };
            connection.acknowledged(Side::Caller, &ack);
            sizes.extend(connection.next_data(number, Side::Caller, 1).map(|packet| packet.bytes));
            sizes
        };
        assert_eq!(packets(true), [200; 20]);
        assert_eq!(packets(false), [200, SEGMENT_BYTES, SEGMENT_BYTES, 4000 - 200 - 2 * SEGMENT_BYTES]);
    }

    #[test]
    fn no_more_is_under_way_than_the_send_buffer_keeps() {
        let mut connections = Connections::new(4);
        let number = connections.open(PARTIES, Time::ZERO);
        let connection = connections.get_mut(number).unwrap();
        connection.set_send_buffer(Side::Caller, 16_384);
        connection.enqueue_stream(Side::Caller, 1 << 20);
        let mut under_way = 0;
        for _ in 0..100 {
            while let Some(packet) = connection.next_data(number, Side::Caller, 1) {
                under_way += packet.bytes;
            }
            assert!(under_way <= 16_384);
            let ack =
                Packet { acknowledges: SEGMENT_BYTES, ..connection.packet(number, Side::Called, Kind::Ack) };
            connection.acknowledged(Side::Caller, &ack);
            under_way -= SEGMENT_BYTES;
        }
        assert_eq!(under_way, 10 * SEGMENT_BYTES, "eleven segments fit, of which one was acknowledged");
    }
}
