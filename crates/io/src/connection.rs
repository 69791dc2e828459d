//! One HTTP request over its own TCP connection, packet by packet, as far as packets cost time.
//!
//! For a file of 10 KB sixteen packets cross the ring: SYN, ACK, GET, an acknowledgement for every two segments and FIN
//! in; SYN-ACK, seven segments and the last ACK out. (This count fits the I/O counts of Cherkasova, Gupta and Vahdat
//! 2007, Tables 1 and 2: 32.9 for each request, two for each packet.)

use vcpulab_host::Time;

/// Most data in one segment, bytes (Ethernet).
const SEGMENT_BYTES: u64 = 1460;
/// Link, IP and TCP headers with time stamps, bytes.
const HEADER_BYTES: u32 = 66;
/// A GET with its usual header lines, bytes.
const GET_BYTES: u32 = 300;
/// Segments that may be under way before the first acknowledgement (RFC 3390, for 1460-byte segments: three or four).
const INITIAL_WINDOW: u32 = 4;
/// Most segments under way: a receive window of 64 KB, the most without window scaling (RFC 9293).
const WINDOW_MAX: u32 = 44;
/// Segments acknowledged together (RFC 1122, delayed acknowledgements).
const SEGMENTS_PER_ACK: u32 = 2;

/// What a packet says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The client begins.
    Syn,
    /// The server accepts.
    SynAck,
    /// The server has no room.
    Refused,
    /// The client confirms.
    Ack,
    /// The client asks for the file.
    Get,
    /// A segment of the file.
    Data,
    /// The client has received two more segments.
    DataAck,
    /// The client has received all, and closes.
    Fin,
    /// The server confirms that.
    FinAck,
}

/// One packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The connection it belongs to.
    pub connection: u32,
    /// What it says.
    pub kind: Kind,
    /// Its size on the line, bytes.
    pub bytes: u32,
}

/// Both ends of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Which client began it.
    pub client: usize,
    /// Which domain serves it.
    pub server: usize,
    /// When it began.
    pub started: Time,
    file_bytes: u64,
    segments: u32,
    /// At the client.
    received: u32,
    /// At the server.
    sent: u32,
    acknowledged: u32,
    window: u32,
    /// Packets that were lost and not sent again yet.
    lost: u32,
    closed: bool,
}

impl Connection {
    /// A connection that begins now.
    pub fn new(client: usize, server: usize, file_bytes: u64, started: Time) -> Self {
        let segments = file_bytes.div_ceil(SEGMENT_BYTES).max(1) as u32;
        let window = INITIAL_WINDOW;
        let (received, sent, acknowledged, lost, closed) = (0, 0, 0, 0, false);
        Connection {
            client,
            server,
            started,
            file_bytes,
            segments,
            received,
            sent,
            acknowledged,
            window,
            lost,
            closed,
        }
    }

    /// A packet of this connection that carries no part of the file.
    pub fn packet(connection: u32, kind: Kind) -> Packet {
        let bytes = if kind == Kind::Get { GET_BYTES } else { HEADER_BYTES };
        Packet { connection, kind, bytes }
    }

    /// The server's next segment, if the window lets it.
    pub fn next_segment(&mut self, connection: u32) -> Option<Packet> {
        if self.sent == self.segments || self.sent - self.acknowledged >= self.window {
            return None;
        }
        let left = self.file_bytes - u64::from(self.sent) * SEGMENT_BYTES;
        self.sent += 1;
        Some(Packet { connection, kind: Kind::Data, bytes: HEADER_BYTES + left.min(SEGMENT_BYTES) as u32 })
    }

    /// The server hears of two more segments received; the window grows by one (slow start), up to the client's limit.
    pub fn acknowledge(&mut self) {
        self.acknowledged += SEGMENTS_PER_ACK;
        self.window = (self.window + 1).min(WINDOW_MAX);
    }

    /// The client receives a segment; what it answers, if anything. `Fin`: the file is complete.
    pub fn receive_segment(&mut self) -> Option<Kind> {
        self.received += 1;
        if self.received == self.segments {
            Some(Kind::Fin)
        } else if self.received.is_multiple_of(SEGMENTS_PER_ACK) {
            Some(Kind::DataAck)
        } else {
            None
        }
    }
}

/// All connections, by number; numbers are used again.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    all: Vec<Connection>,
    free: Vec<u32>,
}

impl Connections {
    /// Adds one.
    pub fn open(&mut self, connection: Connection) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = connection;
                number
            }
            None => {
                self.all.push(connection);
                self.all.len() as u32 - 1
            }
        }
    }

    /// One of them.
    pub fn get(&mut self, number: u32) -> &mut Connection {
        &mut self.all[number as usize]
    }

    /// It is over. Its number stays taken as long as a lost packet of it may still be sent again.
    pub fn close(&mut self, number: u32) {
        let connection = self.get(number);
        connection.closed = true;
        if connection.lost == 0 {
            self.free.push(number);
        }
    }

    /// A packet of it was lost, and will be sent again.
    pub fn lose(&mut self, number: u32) {
        self.get(number).lost += 1;
    }

    /// It is time to send that packet again: is it still wanted? Once the file is complete only the last packet is;
    /// another one would follow it, and could reach whatever connection has the number then.
    pub fn send_again(&mut self, packet: Packet) -> bool {
        let connection = self.get(packet.connection);
        connection.lost -= 1;
        let complete = connection.received == connection.segments;
        if connection.closed && connection.lost == 0 {
            self.free.push(packet.connection);
        }
        !complete || packet.kind == Kind::Fin
    }

    /// How many are open.
    pub fn open_count(&self) -> usize {
        self.all.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a transfer run with every packet delivered at once; returns data packets and acknowledgements.
    fn transfer(file_bytes: u64) -> (u32, u32) {
        let mut connection = Connection::new(0, 0, file_bytes, 0);
        let (mut data, mut acks) = (0, 0);
        let mut under_way = std::collections::VecDeque::new();
        loop {
            while let Some(packet) = connection.next_segment(0) {
                data += 1;
                under_way.push_back(packet);
            }
            under_way.pop_front().expect("a transfer does not stall");
            match connection.receive_segment() {
                Some(Kind::Fin) => return (data, acks),
                Some(_) => {
                    acks += 1;
                    connection.acknowledge();
                }
                None => {}
            }
        }
    }

    #[test]
    fn a_file_of_10_kb_takes_seven_segments_and_three_acknowledgements() {
        assert_eq!(transfer(10_000), (7, 3));
    }

    #[test]
    fn no_size_stalls() {
        for segments in 0..400 {
            let (data, acks) = transfer(segments * SEGMENT_BYTES);
            assert_eq!(u64::from(data), segments.max(1));
            assert_eq!(acks, data.saturating_sub(1) / 2);
        }
    }
}
