//! TCP, as far as CPU scheduling feels it: packets, windows, acknowledgements, set-up and teardown.
//!
//! Segments carry sizes, not contents. Nothing arrives out of order; what finds a full queue is sent again later. A page of
//! 10 KB over a connection of its own takes sixteen packets: SYN, ACK, GET, an acknowledgement for every two segments and FIN
//! in; SYN-ACK, seven segments and the last ACK out. (This count fits the I/O counts of Cherkasova, Gupta and Vahdat
//! 2007, Tables 1 and 2: 32.9 for each request, two for each packet.)

use vcpulab_host::{Span, Time};

/// Most data in one segment, bytes (Ethernet, with time stamps).
pub const SEGMENT_BYTES: u32 = 1448;
/// Link, IP and TCP headers with time stamps, bytes.
pub const HEADER_BYTES: u32 = 66;
/// Most bytes under way: a receive window of 64 KB, the most without window scaling (RFC 9293, section 3.1).
pub const WINDOW_MAX: u32 = 65_535;
/// What a packet takes up in a socket's buffer whatever its size, bytes: small ones fill it with little data (a page half,
/// as Linux accounts for a frame's buffer).
const BUFFER_PER_PACKET: u32 = 2048;
/// A receiver's socket buffer, bytes: Linux's default maximum is 85 to 170 KB, of which half is offered as window.
const RECEIVE_BUFFER: u32 = 2 * WINDOW_MAX;
/// Bytes that an application may hand over ahead of the network, unless it says otherwise (Linux's default send buffer: 16 KB,
/// grown to 64 KB and more).
const SEND_BUFFER: u32 = 65_536;
/// The estimate of the peer's segment size is not below this, bytes (RFC 1122's default segment size).
const SEGMENT_ESTIMATE_MIN: u32 = 536;
/// A call that is not answered is made again after so long, then after twice as long, and so on, ns (RFC 1122, section
/// 4.2.3.1: three seconds).
pub const CALL_AGAIN: Span = 3_000_000_000;
/// How often a call is made before its caller gives up (Windows XP: TcpMaxConnectRetransmissions is 2, so after 21 s).
pub const CALLS_MAX: u32 = 3;
/// An acknowledgement is held back for so long at most, ns (Linux: 40 ms; RFC 1122 allows 500).
pub const DELAYED_ACK: Span = 40_000_000;

/// Which end of a connection: the one that began it, or the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// It began the connection.
    Caller = 0,
    /// It was called.
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

/// A connection: its number, and above that how often the number was used before. So what belongs to a connection that is
/// over finds nothing.
pub type ConnectionId = u64;

/// How far a connection has come at the end that was called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The call is on its way, or the connection is over.
    Called,
    /// It answered: the set-up is under way.
    HalfOpen,
    /// It is in the backlog.
    Waiting,
    /// It is served.
    Served,
}

/// What a packet says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The caller begins.
    Syn,
    /// The called end accepts.
    SynAck,
    /// The called end has no room.
    Refused,
    /// Nothing but an acknowledgement.
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

/// One packet: a segment, or several that a NIC will cut or has put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The connection it belongs to.
    pub connection: ConnectionId,
    /// Which end it goes to.
    pub to: Side,
    /// What it says.
    pub kind: Kind,
    /// How many segments it is on the line.
    pub segments: u32,
    /// Its data, bytes.
    pub bytes: u32,
    /// How much it acknowledges, bytes.
    pub acknowledges: u32,
    /// How much more the sender of it has room for, bytes.
    pub space: u32,
}

impl Packet {
    /// Its size on the line, bytes.
    pub fn line_bytes(&self) -> u32 {
        self.bytes + self.segments * HEADER_BYTES
    }
}

/// One end of a connection.
#[derive(Clone, Copy, Debug)]
struct End {
    // It sends:
    queued: u64,
    under_way: u32,
    window: u32,
    peer_space: u32,
    segment: u32,
    send_buffer: u32,
    /// What does not fill a segment waits until all before it has been acknowledged (Nagle's algorithm, RFC 896).
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

    /// How much more it has room for, bytes.
    fn space(&self) -> u32 {
        let taken = self.unread_packets.saturating_mul(BUFFER_PER_PACKET).max(self.unread);
        (RECEIVE_BUFFER.saturating_sub(taken) / 2).min(WINDOW_MAX)
    }
}

/// What data that arrives leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrival {
    /// A message is complete.
    pub complete: bool,
    /// An acknowledgement should go back now.
    pub acknowledge: bool,
    /// One should go back soon, unless data does before.
    pub acknowledge_later: bool,
}

/// Whose an end of a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Party {
    /// A user of a client outside.
    Client { client: usize, user: u32 },
    /// A machine outside that takes everything.
    Outside,
    /// A task in a guest.
    Task { guest: usize, task: usize },
    /// A service in a guest: an application.
    Service { guest: usize, app: usize },
}

impl Party {
    /// The guest that it is in.
    pub fn guest(self) -> Option<usize> {
        match self {
            Party::Client { .. } | Party::Outside => None,
            Party::Task { guest, .. } | Party::Service { guest, .. } => Some(guest),
        }
    }
}

/// A connection, both its ends.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Whose its ends are.
    pub parties: [Party; 2],
    /// When the exchange at hand began.
    pub asked_at: Time,
    /// How long after that there was a connection to ask with, ns; `None`: there is none yet.
    pub connect_ns: Option<Span>,
    /// How long after that the first data of the answer came, ns; `None`: none has.
    pub latency_ns: Option<Span>,
    /// The client machine that its caller is on, if it is on one.
    pub machine: Option<usize>,
    /// Class of the request at hand.
    pub class: u32,
    /// What the request asks for, bytes.
    pub asks: u32,
    /// Size of the request, bytes.
    pub request_bytes: u32,
    /// How far the called end has come with it.
    pub stage: Stage,
    /// Did a request come while it waited in the backlog?
    pub asked: bool,
    /// How often it was called for without an answer.
    pub calls: u32,
    /// How many requests the called end has had of it.
    pub requests: u32,
    /// Is it closed after one exchange?
    pub closes: bool,
    /// Is what comes streams, of which applications take what they want?
    pub streams: bool,
    /// Which task waits at each end for so many bytes to read, and which for room to send.
    pub readers: [Option<(usize, u32)>; 2],
    /// Which task waits at each end for room to send.
    pub senders: [Option<usize>; 2],
    ends: [End; 2],
    answered: bool,
}

impl Connection {
    /// One that is about to begin.
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
            stage: Stage::Called,
            asked: false,
            calls: 0,
            requests: 0,
            closes: false,
            streams: false,
            readers: [None; 2],
            senders: [None; 2],
            ends: [End::new(initial_segments); 2],
            answered: false,
        }
    }

    /// A message of this size is to reach that end.
    pub fn expect(&mut self, side: Side, bytes: u64) {
        self.ends[side as usize].lacks = bytes;
        self.answered = false;
    }

    /// Has the answer to the request at hand come completely?
    pub fn is_answered(&self) -> bool {
        self.answered
    }

    /// An end's application hands over bytes; written in pieces smaller than a segment, they travel as such (Nagle's
    /// algorithm is off).
    pub fn hand_over(&mut self, from: Side, bytes: u32) {
        let end = &mut self.ends[from as usize];
        (end.segment, end.fills) = (bytes.clamp(1, SEGMENT_BYTES), false);
        end.queued += u64::from(bytes);
    }

    /// It hands over bytes of a stream, which fill whole segments however small the pieces are.
    pub fn hand_over_stream(&mut self, from: Side, bytes: u32) {
        let end = &mut self.ends[from as usize];
        (end.segment, end.fills) = (SEGMENT_BYTES, true);
        end.queued += u64::from(bytes);
    }

    /// An end's socket keeps at most so many bytes until they are acknowledged.
    pub fn set_send_buffer(&mut self, of: Side, bytes: u32) {
        self.ends[of as usize].send_buffer = bytes;
    }

    /// What an end's socket keeps at most until it is acknowledged, bytes.
    pub fn send_buffer(&self, of: Side) -> u64 {
        self.ends[of as usize].send_buffer.into()
    }

    /// Bytes that an end's application has handed over and that have not been acknowledged.
    pub fn outstanding(&self, from: Side) -> u64 {
        let end = &self.ends[from as usize];
        end.queued + u64::from(end.under_way)
    }

    /// An end's next packet of data, if the windows let it; of at most so many segments, if the NIC cuts packets.
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
        Packet { connection, to: from.other(), kind, segments: 1, bytes: 0, acknowledges, space: end.offered }
    }

    /// An end hears of what has come to the other one; its window grows with that (slow start, RFC 5681).
    pub fn acknowledged(&mut self, side: Side, packet: &Packet) {
        let end = &mut self.ends[side as usize];
        end.under_way = end.under_way.saturating_sub(packet.acknowledges);
        end.window = (end.window + packet.acknowledges.min(SEGMENT_BYTES)).min(WINDOW_MAX);
        end.peer_space = packet.space;
    }

    /// Data reaches an end. It is acknowledged once more than one full segment has come, and at once only if the window that
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

    /// The time for an acknowledgement held back has come: is there anything to acknowledge?
    pub fn ack_is_due(&mut self, side: Side) -> bool {
        let end = &mut self.ends[side as usize];
        end.ack_due = false;
        end.unacknowledged > 0
    }

    /// Bytes that have come and that the application has not taken.
    pub fn unread(&self, side: Side) -> u32 {
        self.ends[side as usize].unread
    }

    /// The application takes bytes. True: an acknowledgement should go back, because of data or of the room made.
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

    /// Most that an application can wait for at once, bytes: more never fits.
    pub fn readable_max() -> u32 {
        WINDOW_MAX / 2
    }

    /// A packet of this end was lost: its window shrinks (RFC 5681). True: enough are under way that the peer's answers tell
    /// of it soon.
    pub fn shrink(&mut self, from: Side) -> bool {
        let end = &mut self.ends[from as usize];
        end.window = (end.window / 2).max(2 * SEGMENT_BYTES);
        end.under_way >= 4 * end.segment
    }
}

/// All connections. Numbers are used again.
#[derive(Clone, Debug)]
pub struct Connections {
    initial_segments: u32,
    all: Vec<(u32, Option<Connection>)>,
    free: Vec<u32>,
    /// How many each client machine has.
    of_machines: Vec<u32>,
}

impl Connections {
    /// None yet; each will begin with this window, in segments.
    pub fn new(initial_segments: u32) -> Self {
        Connections { initial_segments, all: Vec::new(), free: Vec::new(), of_machines: Vec::new() }
    }

    /// Adds one between these two.
    pub fn open(&mut self, parties: [Party; 2], now: Time) -> ConnectionId {
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push((0, None));
            self.all.len() as u32 - 1
        });
        let (uses, connection) = &mut self.all[number as usize];
        *connection = Some(Connection::new(parties, now, self.initial_segments));
        u64::from(*uses) << 32 | u64::from(number)
    }

    /// Adds one from a client machine.
    pub fn open_from(&mut self, machine: usize, parties: [Party; 2], now: Time) -> ConnectionId {
        let id = self.open(parties, now);
        if let Some(connection) = self.get(id) {
            connection.machine = Some(machine);
        }
        self.of_machines.resize(self.of_machines.len().max(machine + 1), 0);
        self.of_machines[machine] += 1;
        id
    }

    /// How many a client machine has.
    pub fn of_machine(&self, machine: usize) -> u32 {
        self.of_machines.get(machine).copied().unwrap_or(0)
    }

    /// One of them, if it is not over.
    pub fn get(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let (uses, connection) = self.all.get_mut(id as u32 as usize)?;
        if u64::from(*uses) == id >> 32 { connection.as_mut() } else { None }
    }

    /// It is over.
    pub fn close(&mut self, id: ConnectionId) {
        if let Some(connection) = self.get(id) {
            if let Some(machine) = connection.machine {
                self.of_machines[machine] -= 1;
            }
            let number = id as u32;
            let (uses, connection) = &mut self.all[number as usize];
            *connection = None;
            *uses = uses.wrapping_add(1);
            self.free.push(number);
        }
    }

    /// Those that have an end in a guest.
    pub fn of_guest(&self, guest: usize) -> Vec<ConnectionId> {
        let with_ids = self.all.iter().enumerate();
        let of = |(number, (uses, connection)): (usize, &(u32, Option<Connection>))| {
            let inside = connection.as_ref()?.parties.iter().any(|party| party.guest() == Some(guest));
            inside.then_some(u64::from(*uses) << 32 | number as u64)
        };
        with_ids.filter_map(of).collect()
    }

    /// How many there are.
    pub fn open_count(&self) -> usize {
        self.all.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTIES: [Party; 2] = [Party::Outside, Party::Service { guest: 0, app: 0 }];

    /// Lets one end send a message of `bytes`, every packet delivered at once; returns data packets and acknowledgements.
    fn transfer(bytes: u64, segments_max: u32) -> (u32, u32) {
        let mut connections = Connections::new(4);
        let number = connections.open(PARTIES, 0);
        let connection = connections.get(number).unwrap();
        connection.expect(Side::Caller, bytes);
        connection.hand_over(Side::Called, bytes as u32);
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
        let number = connections.open(PARTIES, 0);
        let connection = connections.get(number).unwrap();
        connection.streams = true;
        connection.hand_over(Side::Caller, 10_000_000);
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
            let number = connections.open(PARTIES, 0);
            let connection = connections.get(number).unwrap();
            connection.streams = true;
            let mut sizes = Vec::new();
            for _ in 0..20 {
                match push {
                    true => connection.hand_over(Side::Caller, 200),
                    false => connection.hand_over_stream(Side::Caller, 200),
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
    fn what_belongs_to_a_connection_that_is_over_finds_nothing() {
        let mut connections = Connections::new(4);
        let first = connections.open(PARTIES, 0);
        connections.close(first);
        connections.close(first);
        let second = connections.open(PARTIES, 5);
        assert!(connections.get(first).is_none() && connections.get(second).is_some());
        assert_eq!((connections.open_count(), second as u32), (1, first as u32), "its number is used again");
    }

    #[test]
    fn no_more_is_under_way_than_the_send_buffer_keeps() {
        let mut connections = Connections::new(4);
        let number = connections.open(PARTIES, 0);
        let connection = connections.get(number).unwrap();
        connection.set_send_buffer(Side::Caller, 16_384);
        connection.hand_over_stream(Side::Caller, 1 << 20);
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
