//! Enhanced: Credit `xen4.4.1` with a bar. Each pCPU remembers the credit of the vCPU it chose last; a vCPU in debt
//! or below that bar is passed over, and sent to a pCPU with nothing waiting if there is one. (V. Venkatesh's thesis,
//! 2015, as pseudo-code only. Every question that it leaves open is an option here. The defaults are readings that
//! terminate and never leave a pCPU idle beside work: `docs/schedulers/enhanced.md`.)

use std::fmt;

use vcpulab_host::{
    CpuMask, Decision, DomId, HostRules, NEVER, Params, PcpuId, PolicyContext, Rejected, Scheduler, Scope,
    Table, Time, VcpuId,
};

use super::credit::rules::XEN_4_4_1;
use super::credit::{self, ACCOUNTING, Credit, Priority};
use crate::param_spec::{ParamKind, ParamSpec};
use crate::policy::{Generation, Registered};
use crate::proposal::{Proposal, Refusal};
use crate::role::Role;
use crate::table::put;
use crate::toolstack::Toolstack;
use crate::width::Width;

/// The policy.
#[derive(Clone, Debug)]
pub struct Enhanced {
    credit: Credit,
    options: Params,
    /// The bar of each pCPU; all the same under `scope = "global"`.
    bars: Table<PcpuId, i32>,
    /// Time at which each vCPU was last sent to a refuge. With `notify = "always"` two busy pCPUs could otherwise send
    /// a vCPU to and fro without end in a single instant.
    sent_at: Table<VcpuId, Time>,
}

impl Enhanced {
    /// Whether an option has this value.
    fn is(&self, option: &ParamSpec, word: &str) -> bool {
        let index = self.options.int(option.name).unwrap_or(option.default);
        matches!(option.kind, ParamKind::Choice(words) if words.get(index as usize) == Some(&word))
    }

    fn entries(&self, p: PcpuId) -> impl Iterator<Item = VcpuId> + '_ {
        self.credit.waiting(p)
    }

    fn qualifies(&self, v: VcpuId, bar: i32) -> bool {
        let priority = self.credit.priority(v);
        priority > Priority::Over && self.credit.credit(v) >= bar
            || priority == Priority::Boost && self.is(&BOOSTED, "qualifies")
    }

    fn set_all(&mut self, bar: i32) {
        self.bars.iter_mut().for_each(|each| *each = bar);
    }

    fn set_bar(&mut self, p: PcpuId, bar: i32) {
        if self.is(&SCOPE, "global") {
            self.set_all(bar);
        } else {
            self.bars[p] = bar;
        }
    }

    /// The vCPU with most credit, the first of equals.
    fn richest(&self, among: impl Iterator<Item = VcpuId>) -> Option<VcpuId> {
        let richer = |best: Option<VcpuId>, v: VcpuId| match best {
            Some(best) if self.credit.credit(best) >= self.credit.credit(v) => Some(best),
            _ => Some(v),
        };
        among.fold(None, richer)
    }

    /// A pCPU with nothing waiting that `v` can be sent to, and whether it idles.
    fn refuge(&self, ctx: &PolicyContext, p: PcpuId, v: VcpuId) -> Option<(PcpuId, bool)> {
        let idles = |q: PcpuId| ctx.is_idle(ctx.current(q));
        let mut empty = CpuMask::EMPTY;
        for q in ctx.affinity(v).iter() {
            if q != p && self.entries(q).next().is_none() {
                empty.insert(q);
            }
        }
        let alone = self.entries(p).nth(1).is_none();
        let found = if alone {
            let may_go = self.is(&LAST, "send-to-idle") && !idles(p);
            empty.iter().find(|&q| may_go && idles(q))
        } else if self.is(&TARGET, "scan") {
            empty.next_after(p)
        } else {
            let any = empty.first().filter(|_| !self.is(&TARGET, "idle"));
            empty.iter().find(|&q| idles(q)).or(any)
        };
        found.map(|q| (q, idles(q)))
    }

    /// Examines each entry once and returns the first that qualifies; the others go to a refuge or to the tail.
    fn pass(&mut self, ctx: &mut PolicyContext, p: PcpuId, bar: i32) -> Option<VcpuId> {
        if self.is(&PICK, "best")
            && let Some(best) = self.richest(self.entries(p).filter(|&v| self.qualifies(v, bar)))
        {
            self.credit.dequeue(p, best);
            return Some(best);
        }
        for _ in 0..self.entries(p).count() {
            let v = self.entries(p).next()?;
            self.credit.dequeue(p, v);
            if self.qualifies(v, bar) {
                return Some(v);
            }
            // The refuge is looked for while `v` still counts as an entry.
            self.credit.enqueue_first(p, v);
            let always = self.is(&NOTIFY, "always");
            let stays = self.is(&MOVE, "over-only") && self.credit.priority(v) > Priority::Over
                || always && self.sent_at[v] == ctx.now();
            let refuge = if stays { None } else { self.refuge(ctx, p, v) };
            self.credit.dequeue(p, v);
            match refuge {
                Some((q, idles)) => {
                    ctx.set_processor(v, q);
                    self.sent_at[v] = ctx.now();
                    self.credit.enqueue_last(q, v);
                    if idles || always {
                        ctx.raise_reschedule(q);
                    }
                }
                None => self.credit.enqueue_last(p, v),
            }
        }
        None
    }

    /// The vCPU that runs if no vCPU qualifies.
    fn choose_anyway(&self, p: PcpuId) -> Option<VcpuId> {
        let head = self.entries(p).next();
        if self.is(&NONE, "head") {
            head
        } else if self.is(&NONE, "under-first") {
            self.entries(p).find(|&v| self.credit.priority(v) == Priority::Under).or(head)
        } else {
            self.richest(self.entries(p))
        }
    }

    /// The next vCPU of `p`, off its queue, and whether it qualified.
    fn choose(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> (VcpuId, bool) {
        if self.is(&RESET, "decision") {
            let greatest = self.richest(self.entries(p)).map_or(0, |v| self.credit.credit(v));
            self.set_bar(p, greatest);
        }
        let mut qualified = self.pass(ctx, p, self.bars[p]);
        if qualified.is_none() && self.options.int(PASSES.name) == Some(2) {
            qualified = self.pass(ctx, p, 0);
        }
        if let Some(v) = qualified {
            return (v, true);
        }
        let Some(v) = self.choose_anyway(p) else {
            return (self.credit.steal(ctx, p, Priority::Idle).unwrap_or(ctx.idle(p)), true);
        };
        let priority = self.credit.priority(v);
        if priority <= Priority::Over
            && self.is(&STEAL, "credit")
            && let Some(stolen) = self.credit.steal(ctx, p, priority)
        {
            return (stolen, true);
        }
        self.credit.dequeue(p, v);
        (v, false)
    }
}

impl Scheduler for Enhanced {
    fn rules(&self) -> HostRules {
        self.credit.rules()
    }

    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        put(&mut self.bars, p, 0);
        self.credit.add_pcpu(ctx, p);
    }

    fn add_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        self.credit.add_domain(ctx, d);
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        put(&mut self.sent_at, v, NEVER);
        self.credit.insert(ctx, v);
    }

    fn remove(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.credit.remove(ctx, v);
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.credit.wake(ctx, v);
        let p = ctx.processor(v);
        let current = ctx.current(p);
        let ahead =
            self.credit.priority(v) > Priority::Over && self.credit.credit(v) > self.credit.credit(current);
        if ahead && !ctx.is_idle(current) && self.is(&SUPERSEDE, "preempt") {
            ctx.raise_reschedule(p);
        }
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.credit.sleep(ctx, v);
    }

    fn yielded(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.credit.yielded(ctx, v);
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let (current, idle) = (ctx.current(p), ctx.idle(p));
        if let Some(kept) = self.credit.charge_or_keep(ctx, current) {
            return kept;
        }
        self.credit.forget_yield(current);
        if current != idle && ctx.runnable(current) {
            self.credit.enqueue_last(p, current);
        }
        let (next, qualified) = self.choose(ctx, p);
        let credit = self.credit.credit(next);
        let keeps = self.is(&BAR, "max") && credit < self.bars[p] || self.is(&BAR, "qualified") && !qualified;
        if next != idle && credit > 0 && !keeps {
            self.set_bar(p, credit);
        }
        self.credit.dispatch(ctx, p, next)
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        self.credit.pick(ctx, v)
    }

    fn timer(&mut self, ctx: &mut PolicyContext, token: u32) {
        self.credit.timer(ctx, token);
        if token == ACCOUNTING && self.is(&RESET, "accounting") {
            self.set_all(0);
        }
    }

    fn adjust(&mut self, ctx: &mut PolicyContext, d: DomId, params: &Params) -> Result<(), Rejected> {
        self.credit.adjust(ctx, d, params)
    }

    fn adjust_global(&mut self, ctx: &mut PolicyContext, params: &Params) -> Result<(), Rejected> {
        self.credit.adjust_global(ctx, params)
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        self.credit.dump(ctx, out)?;
        writeln!(out, "bars {:?}", self.bars)
    }
}

// ---- parameters and creation ----

impl Registered for Enhanced {
    type Rules = ();
    const NAME: &'static str = "enhanced";
    const DOC: &'static str = "Credit, in which vCPUs with more credit left overtake (a thesis).";
    const GENERATIONS: &'static [(Generation, ())] = &[(
        Generation {
            name: "xen4.4.1",
            since: &[],
            params: &PARAMS,
            work_conserving: true,
            hard_affinity: true,
            toolstack: Toolstack::NONE,
        },
        (),
    )];

    fn check(_rules: (), proposal: &Proposal<'_>) -> Result<(), Refusal> {
        Credit::check(XEN_4_4_1, proposal)
    }

    fn width(_rules: (), param: &str) -> Width {
        Credit::width(XEN_4_4_1, param)
    }

    fn new(_rules: (), global: &Params, pcpus: u32) -> Self {
        Enhanced {
            credit: Credit::new(XEN_4_4_1, global, pcpus),
            options: global.clone(),
            bars: Table::new(),
            sent_at: Table::new(),
        }
    }
}

const fn option(name: &'static str, words: &'static [&'static str], doc: &'static str) -> ParamSpec {
    ParamSpec {
        name,
        scope: Scope::Global,
        role: Role::Plain,
        unit: "",
        kind: ParamKind::Choice(words),
        default: 0,
        doc,
    }
}

const PASSES: ParamSpec = ParamSpec {
    name: "passes",
    scope: Scope::Global,
    role: Role::Plain,
    unit: "",
    kind: ParamKind::Int { min: 1, max: 2, also: &[] },
    default: 1,
    doc: "Passes over the queue; 2: one more, with the bar at 0, if no vCPU qualified.",
};
const NONE: ParamSpec = option(
    "none",
    &["most", "head", "under-first"],
    "vCPU to run if none qualifies: the one with most credit, the head of the queue, or the first UNDER.",
);
const RESET: ParamSpec = option(
    "reset",
    &["accounting", "never", "decision"],
    "Reset of the bar: to 0 after each accounting pass, never, or to the greatest credit waiting at each decision.",
);
const SCOPE: ParamSpec =
    option("scope", &["pcpu", "global"], "Scope of the bar: one for each pCPU, or one for the host.");
const BAR: ParamSpec = option(
    "bar",
    &["last", "max", "qualified"],
    "The bar after a decision: the credit of the vCPU chosen; that unless it is lower; or that unless none qualified.",
);
const SUPERSEDE: ParamSpec = option(
    "supersede",
    &["queue", "preempt"],
    "Advantage of more credit at a wake-up: an earlier place in the queue, or preemption too.",
);
const PICK: ParamSpec = option(
    "pick",
    &["first", "best"],
    "vCPU chosen: the first that qualifies, or, before any is moved, the one with most credit.",
);
const TARGET: ParamSpec = option(
    "target",
    &["any", "idle", "scan"],
    "pCPUs that a vCPU may be sent to: any with nothing waiting, idle ones first; idle ones only; the next in cyclic order.",
);
const LAST: ParamSpec =
    option("last", &["keep", "send-to-idle"], "The last vCPU waiting: kept, or sent to an idle pCPU.");
const NOTIFY: ParamSpec =
    option("notify", &["idle", "always"], "pCPUs notified of a vCPU sent to them: idle ones, or all.");
const MOVE: ParamSpec = option(
    "move",
    &["both", "over-only"],
    "vCPUs sent away: those below the bar and those in debt, or only those in debt.",
);
const BOOSTED: ParamSpec =
    option("boost", &["needs-bar", "qualifies"], "A boosted vCPU: held to the bar, or always qualified.");
const STEAL: ParamSpec = option(
    "steal",
    &["empty", "credit"],
    "Occasion for a pCPU to steal: nothing waiting, or, as in Credit, also a best vCPU in debt.",
);

const PARAMS: [ParamSpec; 18] = [
    credit::params::WEIGHT,
    credit::params::CAP,
    credit::params::TSLICE,
    credit::params::RATELIMIT,
    credit::params::MIGRATION_DELAY,
    PASSES,
    NONE,
    RESET,
    SCOPE,
    BAR,
    SUPERSEDE,
    PICK,
    TARGET,
    LAST,
    NOTIFY,
    MOVE,
    BOOSTED,
    STEAL,
];
