//! TCP's timers: retransmission of lost packets, retransmission of lost SYNs, delayed acknowledgements.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use vcpulab_guest::ConnectionId;
use vcpulab_host::{NEVER, Span, Time, WorldContext};

use super::tcp::{DELAYED_ACK, Packet, SYN_TIMEOUT, Side};
use crate::ids::SourceId;
use crate::sources::{Source, Sources};

/// Time until a lost packet is sent again where acknowledgements of later segments tell of the loss (fast retransmit): about a round
/// trip, ns.
const RETRANSMIT_SOON: Span = Span::from_ms(1);

/// The timers of all connections.
#[derive(Clone, Debug)]
pub(crate) struct TcpTimers {
    /// Lost packets, by the time of their retransmission, and then in the order of their losses.
    lost: BTreeMap<(Time, u64), Packet>,
    losses: u64,
    lost_source: SourceId,
    /// Delayed acknowledgements, in the order of time: all wait equally long.
    acks: VecDeque<(Time, ConnectionId, Side)>,
    ack_source: SourceId,
    /// Connections whose SYN was lost, by the time of its retransmission.
    syns: BinaryHeap<Reverse<(Time, ConnectionId)>>,
    syn_source: SourceId,
}

impl TcpTimers {
    /// Timers that are not set.
    pub fn new(sources: &mut Sources) -> Self {
        TcpTimers {
            lost: BTreeMap::new(),
            losses: 0,
            lost_source: sources.register(Source::Retransmission),
            acks: VecDeque::new(),
            ack_source: sources.register(Source::DelayedAck),
            syns: BinaryHeap::new(),
            syn_source: sources.register(Source::SynRetransmission),
        }
    }

    /// Keeps a lost packet until it is sent again. `soon`: acknowledgements tell of the loss.
    pub fn keep_lost(&mut self, ctx: &mut WorldContext<'_>, packet: Packet, soon: bool) {
        let delay = if soon { RETRANSMIT_SOON } else { packet.retransmit_after() };
        self.keep_lost_for(ctx, packet, delay);
    }

    /// Keeps a lost packet for that time.
    pub fn keep_lost_for(&mut self, ctx: &mut WorldContext<'_>, packet: Packet, delay: Span) {
        self.losses += 1;
        self.lost.insert((ctx.now() + delay, self.losses), packet);
        self.arm_retransmission(ctx);
    }

    /// Removes a lost packet whose time has come.
    pub fn take_lost(&mut self, now: Time) -> Option<Packet> {
        let first = self.lost.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }

    /// Sets the timer of lost packets.
    pub fn arm_retransmission(&self, ctx: &mut WorldContext<'_>) {
        self.lost_source.set(ctx, self.lost.first_key_value().map_or(NEVER, |(&(time, _), _)| time));
    }

    /// Delays an acknowledgement.
    pub fn delay_ack(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, side: Side) {
        self.acks.push_back((ctx.now() + DELAYED_ACK, id, side));
        if self.acks.len() == 1 {
            self.arm_acks(ctx, |_| true);
        }
    }

    /// Removes a delayed acknowledgement that is due now.
    pub fn take_ack(&mut self, now: Time) -> Option<(ConnectionId, Side)> {
        let &(_, id, side) = self.acks.front().filter(|&&(time, ..)| time <= now)?;
        self.acks.pop_front();
        Some((id, side))
    }

    /// Sets the timer of delayed acknowledgements, for the first connection that is still open.
    pub fn arm_acks(&mut self, ctx: &mut WorldContext<'_>, is_open: impl Fn(ConnectionId) -> bool) {
        while self.acks.pop_front_if(|&mut (_, id, _)| !is_open(id)).is_some() {}
        self.ack_source.set(ctx, self.acks.front().map_or(NEVER, |&(time, ..)| time));
    }

    /// Waits to send a SYN again that was lost after `lost_before` others.
    pub fn keep_syn(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, lost_before: u32) {
        self.syns.push(Reverse((ctx.now() + SYN_TIMEOUT * (1 << lost_before), id)));
        self.arm_syns(ctx);
    }

    /// Removes a connection whose SYN is to be sent again now.
    pub fn take_syn(&mut self, now: Time) -> Option<ConnectionId> {
        let &Reverse((_, id)) = self.syns.peek().filter(|Reverse((time, _))| *time <= now)?;
        self.syns.pop();
        Some(id)
    }

    /// Sets the timer of lost SYNs.
    pub fn arm_syns(&self, ctx: &mut WorldContext<'_>) {
        self.syn_source.set(ctx, self.syns.peek().map_or(NEVER, |&Reverse((time, _))| time));
    }
}
