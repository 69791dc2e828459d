"""The TCP packets of a request and its answer, at least.

The rules are those of the simulator (`crates/io/src/network/tcp.rs`): segments of 1448 B with 66 B of headers, and on
a link 24 B of framing; an acknowledgement once more than one full segment has arrived (Linux's rule), none for the
segment that completes an answer after which the connection closes; one round for set-up, one for closing. Delayed
acknowledgements, retransmitted packets and retransmitted SYNs are left out, so that the numbers are lower bounds.
"""

from collections import Counter
from typing import NamedTuple

SEGMENT_BYTES = 1448
FRAMING_BYTES = 24
"""Preamble, check sequence and gap of a frame on Ethernet (IEEE 802.3: 8, 4 and 12)."""
HEADER_BYTES = 66
SEGMENT_ESTIMATE_MIN = 536
OFFLOADED_SEGMENTS = 44
"""Most segments in one packet with segmentation offload: 64 KB."""


class Packet(NamedTuple):
    """A packet between two network stacks; with segmentation offload, several packets on the link."""

    data: int
    """Payload, bytes."""
    segments: int = 1
    """Number of packets on the link."""

    @property
    def line_bytes(self) -> int:
        """Bytes on the link, with headers and framing."""
        return self.data + self.segments * (HEADER_BYTES + FRAMING_BYTES)


EMPTY = Packet(0)
Packets = Counter[Packet]
"""Packets with the number of each; fractions for a fraction of a connection."""


class Exchange(NamedTuple):
    """The packets of a request and its answer."""

    forward: Packets
    """Packets from the caller to the called end."""
    back: Packets
    """Packets from the called end to the caller."""


def message(data: int, segments_max: int = 1) -> Packets:
    """A message as packets: whole segments, and the rest.

    Examples:
        >>> message(10_000)
        Counter({Packet(data=1448, segments=1): 6, Packet(data=1312, segments=1): 1})
    """
    whole, rest = divmod(data, SEGMENT_BYTES * segments_max)
    packets: Packets = Counter()
    if whole:
        packets[Packet(SEGMENT_BYTES * segments_max, segments_max)] += whole
    if rest:
        packets[Packet(rest, -(-rest // SEGMENT_BYTES))] += 1
    return packets


def last(data: int, segments_max: int = 1) -> Packet:
    """The packet that completes a message."""
    return list(message(data, segments_max))[-1] if data else EMPTY


def acknowledgements(data: int, *, offloaded: bool, closes: bool) -> int:
    """Acknowledgements of a message, at least; none with offload, where their number depends on windows.

    Examples:
        >>> acknowledgements(10_000, offloaded=False, closes=True)
        3
    """
    segments = -(-data // SEGMENT_BYTES)
    # After every second segment, more than one full segment is unacknowledged.
    return 0 if offloaded else max(0, segments - closes) // 2


def exchange(
    request: int, answer: int, *, connects: bool, segments_max: tuple[int, int] = (1, 1), per_connection: int = 0
) -> Exchange:
    """The packets of one request with its answer.

    Args:
        request: size of the request, bytes.
        answer: size of the answer, bytes.
        connects: does the request use a connection of its own? Otherwise it uses a kept connection.
        segments_max: most segments in one packet of the caller and of the called end.
        per_connection: requests after which the called end closes a kept connection; 0: never.

    Examples:
        A page of 10 KB over a connection of its own takes sixteen packets:

        >>> forward, back = exchange(300, 10_000, connects=True)
        >>> forward.total(), back.total()
        (7, 9)
    """
    if not connects and per_connection > 0:
        kept = exchange(request, answer, connects=False, segments_max=segments_max)
        own = exchange(request, answer, connects=True, segments_max=segments_max)
        share = 1 / per_connection
        return Exchange(*(_mixed(a, b, share) for a, b in zip(kept, own, strict=True)))
    forward, back = message(request, segments_max[0]), message(answer, segments_max[1])
    forward[EMPTY] += acknowledgements(answer, offloaded=segments_max[1] > 1, closes=connects)
    back[EMPTY] += acknowledgements(request, offloaded=segments_max[0] > 1, closes=False)
    if connects:
        # SYN, the acknowledgement that completes the set-up, and FIN; SYN-ACK, and the answer to the FIN.
        forward[EMPTY] += 3
        back[EMPTY] += 2
    return Exchange(forward, back)


def _mixed(first: Packets, second: Packets, share: float) -> Packets:
    return Counter(
        {
            packet: first[packet] * (1 - share) + second[packet] * share
            for packet in [*first, *(packet for packet in second if packet not in first)]
        }
    )


class Stream(NamedTuple):
    """The packets of one piece of a stream."""

    packet: Packet
    packets: float
    """Packets for one piece."""
    acknowledgements: float
    """Acknowledgements of these packets by a receiver that takes everything at once."""


def stream(piece: int, *, pushed: bool, segments_max: int = 1) -> Stream:
    """The packets of a piece of a stream, at least.

    Args:
        piece: size of the piece, bytes.
        pushed: is each piece sent by itself? Otherwise pieces fill whole segments.
        segments_max: most segments in one packet.

    Examples:
        >>> stream(500, pushed=True).packets, round(stream(500, pushed=False).packets, 3)
        (1.0, 0.345)
    """
    segment = min(piece, SEGMENT_BYTES) if pushed else SEGMENT_BYTES
    packet = Packet(segment * segments_max, segments_max)
    # At most a segment (or the first estimate of one) is unacknowledged when the last packet arrives.
    return Stream(packet, piece / packet.data, piece / (max(segment, SEGMENT_ESTIMATE_MIN) + packet.data))
