//! ARINC 653: a fixed cyclic timetable. In its slot a vCPU runs if it can; no other vCPU may use the time.

use std::fmt;

use vcpulab_host::{
    AffinityRule, Decision, HostRules, ParamValue, Params, PcpuId, Placement, PolicyContext, Rejected,
    Scheduler, Scope, Slice, Span, Table, Time, TimetableEntry, VcpuId,
};

use crate::param_spec::{ParamKind, ParamSpec};
use crate::params::global;
use crate::policy::{Generation, Registered};
use crate::proposal::{Proposal, Refusal};
use crate::role::Role;
use crate::table::put;
use crate::toolstack::Toolstack;
use crate::width::Width;

const ENTRIES_MAX: usize = 64;
/// Length of an idle slice of a pCPU while no timetable is set.
const FRAME_WITHOUT_TIMETABLE: Span = Span::from_ms(10);

/// A slot of the timetable.
#[derive(Clone, Debug)]
struct Slot {
    entry: TimetableEntry,
    /// The vCPU that the slot names, once that vCPU exists.
    vcpu: Option<VcpuId>,
}

impl Slot {
    fn span(&self) -> Span {
        self.entry.runtime
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Arinc653 {
    rules: Rules,
    slots: Vec<Slot>,
    frame: Span,
    next_frame: Time,
    /// Position in the timetable; not used where all pools of the host share a position.
    position: Position,
    awake: Table<VcpuId, bool>,
}

/// The position in the timetable.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    slot: usize,
    next_switch: Time,
}

/// A timetable in the toolstack's form: the length of its major frame, and its entries.
struct Timetable<'p> {
    frame: Span,
    entries: &'p [TimetableEntry],
}

impl<'p> Timetable<'p> {
    /// The timetable among parameters.
    fn among(params: &'p Params, rules: &Rules) -> Result<Self, Refusal> {
        let refused = |allowed: String| Err(Refusal::new([FRAME.name, ENTRIES.name], allowed));
        let (Some(frame), Some(ParamValue::Timetable(entries))) =
            (params.int(FRAME.name), params.get(ENTRIES.name))
        else {
            return refused("both, or neither".into());
        };
        let total = entries.iter().try_fold(0i64, |sum, entry| sum.checked_add(entry.runtime.ns()));
        if total.is_none_or(|total| total > frame) {
            let sum = total.map_or("more than can be counted".into(), |total| total.to_string());
            return refused(format!(
                "entries that take at most the major frame together (they take {sum} ns)"
            ));
        }
        let good = frame > 0
            && (1..=ENTRIES_MAX).contains(&entries.len())
            && entries.iter().all(|entry| entry.runtime > Span::ZERO && entry.vcpu <= rules.vcpu_max);
        if !good {
            let vcpus = rules.vcpu_max;
            return refused(format!("1 to {ENTRIES_MAX} entries, each above 0 ns, of vCPUs up to {vcpus}"));
        }
        Ok(Timetable { frame: Span::from_ns(frame), entries })
    }
}

impl Arinc653 {
    fn install(&mut self, timetable: &Timetable<'_>, now: Time) {
        self.slots = timetable.entries.iter().map(|&entry| Slot { entry, vcpu: None }).collect();
        self.frame = timetable.frame;
        self.next_frame = now;
    }

    fn position(&self, ctx: &PolicyContext) -> Position {
        if self.rules.position_per_pool {
            return self.position;
        }
        let [slot, next_switch] = ctx.statics();
        Position { slot: slot as usize, next_switch: Time::from_ns(next_switch) }
    }

    fn set_position(&mut self, ctx: &mut PolicyContext, position: Position) {
        if self.rules.position_per_pool {
            self.position = position;
        } else {
            ctx.set_statics([position.slot as i64, position.next_switch.ns()]);
        }
    }

    /// The position at `now`, from the position at the last decision.
    fn advanced(&mut self, mut at: Position, now: Time) -> Position {
        let slots = &self.slots;
        if slots.is_empty() && !self.rules.fixed_grid {
            self.next_frame = now + self.frame;
        } else if now >= self.next_frame {
            let late = now - self.next_frame;
            let start = if self.rules.fixed_grid { now - late % self.frame } else { now };
            self.next_frame = start + self.frame;
            at = Position { slot: 0, next_switch: start + slots.first().map_or(self.frame, Slot::span) };
        }
        while now >= at.next_switch && at.slot < slots.len() {
            at.slot += 1;
            at.next_switch += slots.get(at.slot).map_or(Span::ZERO, Slot::span);
        }
        if at.slot >= slots.len() {
            at.next_switch = self.next_frame;
        }
        at
    }

    /// Fills in `v` in the slots that name it.
    fn resolve(&mut self, ctx: &PolicyContext, v: VcpuId) {
        let name = ctx.name(v);
        for slot in &mut self.slots {
            if (slot.entry.domain, slot.entry.vcpu) == name {
                slot.vcpu = Some(v);
            }
        }
    }
}

impl Scheduler for Arinc653 {
    fn rules(&self) -> HostRules {
        self.rules.host
    }

    fn add_pcpu(&mut self, _ctx: &mut PolicyContext, _p: PcpuId) {}

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        put(&mut self.awake, v, false);
        self.resolve(ctx, v);
    }

    fn remove(&mut self, _ctx: &mut PolicyContext, v: VcpuId) {
        for slot in self.slots.iter_mut().filter(|slot| slot.vcpu == Some(v)) {
            slot.vcpu = None;
        }
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.awake[v] = true;
        ctx.raise_reschedule(ctx.processor(v));
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.awake[v] = false;
        if ctx.is_current(v) {
            ctx.raise_reschedule(ctx.processor(v));
        }
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let now = ctx.now();
        let before = self.position(ctx);
        let at = self.advanced(before, now);
        self.set_position(ctx, at);
        let next = self
            .slots
            .get(at.slot)
            .and_then(|slot| slot.vcpu)
            .filter(|&v| self.awake[v] && ctx.runnable(v) && ctx.processor(v) == p)
            .unwrap_or(ctx.idle(p));
        Decision { next, slice: Slice::For(at.next_switch - now) }
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        ctx.processor(v)
    }

    fn adjust_global(&mut self, ctx: &mut PolicyContext, params: &Params) -> Result<(), Rejected> {
        let timetable = Timetable::among(params, &self.rules)?;
        self.install(&timetable, ctx.now());
        for v in ctx.pool_vcpus() {
            self.resolve(ctx, v);
        }
        Ok(())
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        let at = self.position(ctx);
        for (i, Slot { entry, .. }) in self.slots.iter().enumerate() {
            let mark = if i == at.slot { "*" } else { " " };
            writeln!(out, "{mark} slot {i}: d{}v{} for {} ns", entry.domain, entry.vcpu, entry.runtime)?;
        }
        writeln!(out, "next switch {}, next major frame {}", at.next_switch, self.next_frame)
    }
}

// ---- parameters, generations and creation ----

/// No commands: a program of the administrator's own loads timetables, through the toolstack's library
/// (xc_sched_arinc653_schedule_set).
const XL: Toolstack = Toolstack { tool: "xl", sched: "arinc653", domain: "", global: "", set: &[] };
const FRAME: ParamSpec = ParamSpec {
    role: Role::Frame,
    ..global(
        "major_frame_ns",
        "ns",
        ParamKind::int(1, i64::MAX),
        0,
        "Length of the major frame; the entries' run times may not add up to more.",
    )
};
const ENTRIES: ParamSpec = ParamSpec {
    role: Role::Timetable,
    ..global(
        "entries",
        "",
        ParamKind::Timetable(ENTRIES_MAX),
        0,
        "The timetable: whose slot it is, and for how long, from the start of each major frame on.",
    )
};
const PARAMS: &[ParamSpec] = &[FRAME, ENTRIES];

/// The rules of one generation.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    host: HostRules,
    /// The greatest number of a vCPU in a timetable.
    vcpu_max: i64,
    /// Each CPU pool has a position in its timetable. `false`: all pools of the host share a position.
    position_per_pool: bool,
    /// Frames start at whole multiples of their length after the timetable came, however late a pCPU decides. `false`: they
    /// start with the first decision after the end of the last frame.
    fixed_grid: bool,
}

const XEN_4_4_1: Rules = Rules {
    host: HostRules {
        placement: Placement::LeastPopulated,
        affinity: AffinityRule::AlwaysPickFirst,
        soft_affinity: false,
        ..HostRules::XEN_4_17
    },
    vcpu_max: 8191,
    ..XEN_4_17
};
const XEN_4_17: Rules =
    Rules { host: HostRules::XEN_4_17, vcpu_max: i64::MAX, position_per_pool: false, fixed_grid: false };
const XEN_4_19_2: Rules = Rules { position_per_pool: true, ..XEN_4_17 };
/// From 4.20.4 and 4.21.2 on the release does not read past the end of its timetable either; it is never read there here.
const XEN_4_19_3: Rules = Rules { fixed_grid: true, ..XEN_4_19_2 };

const fn generation(name: &'static str, since: &'static [(&'static str, u32)]) -> Generation {
    Generation { name, since, params: PARAMS, work_conserving: false, hard_affinity: false, toolstack: XL }
}

impl Registered for Arinc653 {
    type Rules = Rules;
    const NAME: &'static str = "arinc653";
    const DOC: &'static str = "A fixed cyclic timetable for partitioned systems.";
    const GENERATIONS: &'static [(Generation, Rules)] = &[
        (generation("xen4.4.1", &[]), XEN_4_4_1),
        (generation("xen4.17", &[("xen4.17", 0), ("xen4.18", 0), ("xen4.19", 0), ("xen4.20", 0)]), XEN_4_17),
        (generation("xen4.18", &[("xen4.18", 5), ("xen4.19", 2), ("xen4.20", 1)]), XEN_4_19_2),
        (
            generation("xen4.22", &[("xen4.19", 3), ("xen4.20", 2), ("xen4.21", 0), ("xen4.22", 0)]),
            XEN_4_19_3,
        ),
    ];

    fn check(rules: Rules, proposal: &Proposal<'_>) -> Result<(), Refusal> {
        if proposal.given.is_empty() {
            return Ok(());
        }
        Timetable::among(proposal.given, &rules).map(|_| ())
    }

    fn shortest_interval(_rules: Rules, _scope: Scope, given: &Params) -> Option<(&'static str, Span)> {
        let Some(ParamValue::Timetable(entries)) = given.get(ENTRIES.name) else { return None };
        entries.iter().map(|entry| entry.runtime).min().map(|span| (ENTRIES.name, span))
    }

    fn width(_rules: Rules, param: &str) -> Width {
        if param == FRAME.name { Width::Bits64 } else { Width::Bits32 }
    }

    fn new(rules: Rules, global: &Params, _pcpus: u32) -> Self {
        let mut policy = Arinc653 {
            rules,
            slots: Vec::new(),
            frame: FRAME_WITHOUT_TIMETABLE,
            next_frame: Time::ZERO,
            position: Position::default(),
            awake: Table::new(),
        };
        // A timetable that is refused is none.
        if let Ok(timetable) = Timetable::among(global, &rules) {
            policy.install(&timetable, Time::ZERO);
        }
        policy
    }
}
