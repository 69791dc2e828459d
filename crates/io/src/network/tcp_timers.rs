//! TCP's timers: retransmission of lost packets, retransmission of lost SYNs, delayed acknowledgements.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use vcpulab_guest::ConnectionId;
use vcpulab_host::{NEVER, Span, Time, WorldContext};

use super::tcp::{DELAYED_ACK, Packet, SYN_TIMEOUT, Side};
use crate::ids::SourceId;
use crate::sources::{Source, Sources};

/// Time until a lost packet is sent again, ns (the least retransmission time-out of common TCPs).
const RETRANSMIT_AFTER: Span = Span::from_ms(200);

/// Time until it is sent again where acknowledgements of later segments tell of the loss (fast retransmit): about a round
/// trip, ns.
const RETRANSMIT_SOON: Span = Span::from_ms(1);

/// Things that are due at a time each, in the order of time.
#[derive(Clone, Debug)]
struct Queue<T> {
    source: SourceId,
    due: VecDeque<(Time, T)>,
}

impl<T: Copy> Queue<T> {
    fn new(source: SourceId) -> Self {
        Queue { source, due: VecDeque::new() }
    }

    fn take_due(&mut self, now: Time) -> Option<T> {
        let &(_, first) = self.due.front().filter(|&&(time, _)| time <= now)?;
        self.due.pop_front();
        Some(first)
    }

    fn arm(&self, ctx: &mut WorldContext<'_>) {
        self.source.set(ctx, self.due.front().map_or(NEVER, |&(time, _)| time));
    }
}

/// The timers of all connections.
#[derive(Clone, Debug)]
pub(crate) struct TcpTimers {
    lost: Queue<Packet>,
    lost_soon: Queue<Packet>,
    acks: Queue<(ConnectionId, Side)>,
    /// Connections whose SYN was lost, by the time of its retransmission.
    syns: BinaryHeap<Reverse<(Time, ConnectionId)>>,
    syn_source: SourceId,
}

impl TcpTimers {
    /// Timers that are not set.
    pub fn new(sources: &mut Sources) -> Self {
        TcpTimers {
            lost: Queue::new(sources.register(Source::Retransmission)),
            lost_soon: Queue::new(sources.register(Source::Retransmission)),
            acks: Queue::new(sources.register(Source::DelayedAck)),
            syns: BinaryHeap::new(),
            syn_source: sources.register(Source::SynRetransmission),
        }
    }

    /// Keeps a lost packet until it is sent again. `soon`: acknowledgements tell of the loss.
    pub fn keep_lost(&mut self, ctx: &mut WorldContext<'_>, packet: Packet, soon: bool) {
        let (queue, delay) = match soon {
            true => (&mut self.lost_soon, RETRANSMIT_SOON),
            false => (&mut self.lost, RETRANSMIT_AFTER),
        };
        queue.due.push_back((ctx.now() + delay, packet));
        self.arm_retransmission(ctx);
    }

    /// Removes a lost packet that is to be sent again now.
    pub fn take_lost(&mut self, now: Time) -> Option<Packet> {
        self.lost.take_due(now).or_else(|| self.lost_soon.take_due(now))
    }

    /// Sets the timer of lost packets.
    pub fn arm_retransmission(&self, ctx: &mut WorldContext<'_>) {
        self.lost.arm(ctx);
        self.lost_soon.arm(ctx);
    }

    /// Delays an acknowledgement.
    pub fn delay_ack(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, side: Side) {
        self.acks.due.push_back((ctx.now() + DELAYED_ACK, (id, side)));
        if self.acks.due.len() == 1 {
            self.acks.arm(ctx);
        }
    }

    /// Removes a delayed acknowledgement that is due now.
    pub fn take_ack(&mut self, now: Time) -> Option<(ConnectionId, Side)> {
        self.acks.take_due(now)
    }

    /// Sets the timer of delayed acknowledgements.
    pub fn arm_acks(&self, ctx: &mut WorldContext<'_>) {
        self.acks.arm(ctx);
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
