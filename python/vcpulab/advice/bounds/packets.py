"""What a request and its answer are on the wire: packets of TCP, as few as there can be.

The rules are those of the simulator (`crates/io/src/network/tcp.rs`): segments of 1448 B with 66 B of headers, and on
a link 24 B of framing; an acknowledgement once more than one full segment has come (Linux's rule), none for the segment
that completes an answer after which the connection closes; one round for set-up, one for closing. Not counted, so that
the numbers are lower bounds: acknowledgements that time out, packets sent again, SYNs retransmitted.
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
    """Something that is sent at once."""

    data: int
    """Bytes."""
    segments: int = 1
    """How many packets it is on the link."""

    @property
    def line_bytes(self) -> int:
        """What it takes up of a link."""
        return self.data + self.segments * (HEADER_BYTES + FRAMING_BYTES)


EMPTY = Packet(0)
Packets = Counter[Packet]
"""How many of each; of a fraction of a connection, a fraction."""


class Exchange(NamedTuple):
    """The packets of a request and its answer."""

    there: Packets
    """From the caller to the called end."""
    back: Packets


def message(data: int, segments_max: int = 1) -> Packets:
    """A message as packets: whole segments, and the rest.

    Examples:
        >>> message(10_000)
        Counter({Packet(data=1448, segments=1): 6, Packet(data=1312, segments=1): 1})
    """
    whole, rest = divmod(data, SEGMENT_BYTES * segments_max)
    found: Packets = Counter()
    if whole:
        found[Packet(SEGMENT_BYTES * segments_max, segments_max)] += whole
    if rest:
        found[Packet(rest, -(-rest // SEGMENT_BYTES))] += 1
    return found


def last(data: int, segments_max: int = 1) -> Packet:
    """The packet that completes a message."""
    return list(message(data, segments_max))[-1] if data else EMPTY


def acknowledgements(data: int, *, offloaded: bool, closes: bool) -> int:
    """How many come back for a message, at least; with offload that depends on windows, and none is counted.

    Examples:
        >>> acknowledgements(10_000, offloaded=False, closes=True)
        3
    """
    segments = -(-data // SEGMENT_BYTES)
    # Every second one brings more than a full segment.
    return 0 if offloaded else max(0, segments - closes) // 2


def exchange(
    request: int, answer: int, *, connects: bool, segments_max: tuple[int, int] = (1, 1), per_connection: int = 0
) -> Exchange:
    """The packets of one request with its answer.

    Args:
        request: size of the request, bytes.
        answer: size of the answer, bytes.
        connects: over a connection of its own, set up and closed for it? Otherwise over one that is kept.
        segments_max: most segments in one packet of the caller's and of the called end's.
        per_connection: of a kept connection, after how many requests the called end closes it; 0: never.

    Examples:
        A page of 10 KB over a connection of its own takes sixteen packets:

        >>> there, back = exchange(300, 10_000, connects=True)
        >>> there.total(), back.total()
        (7, 9)
    """
    if not connects and per_connection > 0:
        kept = exchange(request, answer, connects=False, segments_max=segments_max)
        own = exchange(request, answer, connects=True, segments_max=segments_max)
        share = 1 / per_connection
        return Exchange(*(_mixed(a, b, share) for a, b in zip(kept, own, strict=True)))
    there, back = message(request, segments_max[0]), message(answer, segments_max[1])
    there[EMPTY] += acknowledgements(answer, offloaded=segments_max[1] > 1, closes=connects)
    back[EMPTY] += acknowledgements(request, offloaded=segments_max[0] > 1, closes=False)
    if connects:
        # SYN, the acknowledgement that completes the set-up, and FIN; SYN-ACK, and the answer to the FIN.
        there[EMPTY] += 3
        back[EMPTY] += 2
    return Exchange(there, back)


def _mixed(first: Packets, second: Packets, share: float) -> Packets:
    return Counter(
        {
            packet: first[packet] * (1 - share) + second[packet] * share
            for packet in [*first, *(packet for packet in second if packet not in first)]
        }
    )


class Stream(NamedTuple):
    """What one piece of a stream is on the wire."""

    packet: Packet
    packets: float
    """Packets for one piece."""
    acknowledgements: float
    """Acknowledgements of them, where the other end takes everything at once."""


def stream(piece: int, *, pushed: bool, segments_max: int = 1) -> Stream:
    """A piece of a stream, at least.

    Args:
        piece: its size, bytes.
        pushed: does it travel by itself? Otherwise pieces fill whole segments.
        segments_max: most segments in one packet.

    Examples:
        >>> stream(500, pushed=True).packets, round(stream(500, pushed=False).packets, 3)
        (1.0, 0.345)
    """
    segment = min(piece, SEGMENT_BYTES) if pushed else SEGMENT_BYTES
    packet = Packet(segment * segments_max, segments_max)
    # What waits for an acknowledgement is at most a segment (or the first guess at one) when the last packet comes.
    return Stream(packet, piece / packet.data, piece / (max(segment, SEGMENT_ESTIMATE_MIN) + packet.data))
