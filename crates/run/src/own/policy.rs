//! The scheduler whose hooks are elsewhere.
//!
//! What is answered there is checked here and by the host, so nothing can make the engine panic. The first wrong answer is
//! kept, no further hook is called, and the host ends the run.

use std::fmt;

use vcpulab_host::{
    CpuMask, Decision, DomId, HostRules, Params, PcpuId, PolicyContext, Rejected, Scheduler, Scope, Slice,
    Span, VcpuId,
};
use vcpulab_spec::PoolSpec;

use super::lent::{self, Refused, called};

/// A hook as it is called elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Hook<'h> {
    /// The name, as in [`Scheduler`].
    pub name: &'static str,
    /// Arguments of the hook after the context.
    pub with: With<'h>,
    /// Kind of the expected answer.
    pub expected: Expected,
}

/// The arguments of a hook; pCPUs, vCPUs, domains and tokens by their numbers.
#[derive(Clone, Copy, Debug)]
pub enum With<'h> {
    /// No arguments.
    Nothing,
    /// A number.
    One(u32),
    /// Two numbers.
    Two(u32, u32),
    /// A vCPU and pCPUs.
    Pcpus(u32, &'h CpuMask),
    /// A domain and its parameters.
    Domain(u32, &'h Params),
    /// The scheduler's parameters.
    Global(&'h Params),
}

/// The kind of answer that a hook gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// No answer.
    Nothing,
    /// [`Answer::Nothing`] or [`Answer::Rejected`].
    Consent,
    /// [`Answer::Pcpu`].
    Pcpu,
    /// [`Answer::Next`].
    Next,
    /// [`Answer::Text`].
    Text,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Expected::Nothing | Expected::Consent => "nothing",
            Expected::Pcpu => "a pCPU's number",
            Expected::Next => "the next vCPU and its slice in ns, such as `(4, 10_000_000)`",
            Expected::Text => "a text",
        })
    }
}

/// The answer of a hook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// No answer, where the hook gives none.
    Nothing,
    /// The values are refused.
    Rejected,
    /// A pCPU.
    Pcpu(u32),
    /// The vCPU that runs next, and its slice in ns, negative without a limit.
    Next(u32, i64),
    /// A text for people.
    Text(String),
}

/// A way to call the hooks of a policy in another language.
pub trait Caller {
    /// The error of a hook that fails.
    type Error;

    /// Calls a hook, to which the context is [lent](lent::lend), and reads the answer that it expects.
    ///
    /// # Errors
    /// The hook fails, or answers something else.
    fn call(&self, ctx: &mut PolicyContext, hook: Hook<'_>) -> Result<Answer, Self::Error>;

    /// An answer that cannot be.
    fn wrong(&self, refused: Refused) -> Self::Error;

    /// An error as people read it.
    fn described(&self, error: &Self::Error) -> String;

    /// Takes the error that ends the run.
    fn failed(&self, error: Self::Error);
}

/// A policy that is elsewhere, under the host rules of the 4.17 release.
pub struct Elsewhere<C> {
    /// `None`: it could not be made.
    caller: Option<C>,
    /// The defaults of a domain's parameters.
    defaults: Params,
    failure: Option<(&'static str, String)>,
}

impl<C: Caller> Elsewhere<C> {
    /// Makes the policy of a pool, of all its parameters; what fails has its reason for people to read.
    pub fn new(pool: &PoolSpec, make: impl FnOnce(&Params) -> Result<C, String>) -> Self {
        let mut params = defaults(pool, Scope::Global);
        pool.params.iter().for_each(|(name, value)| params.set(name, value.clone()));
        let (caller, failure) = match make(&params) {
            Ok(caller) => (Some(caller), None),
            Err(reason) => (None, Some(("__init__", reason))),
        };
        Elsewhere { caller, defaults: defaults(pool, Scope::Domain), failure }
    }

    /// Calls a hook. `None`: the policy has failed, now or before.
    fn ask<T>(
        &mut self,
        ctx: &mut PolicyContext,
        hook: Hook<'_>,
        read: impl FnOnce(&PolicyContext, Answer) -> Result<T, Refused>,
    ) -> Option<T> {
        let caller = self.caller.as_ref()?;
        if self.failure.is_some() {
            return None;
        }
        let answer = caller.call(ctx, hook);
        match answer.and_then(|answer| read(ctx, answer).map_err(|refused| caller.wrong(refused))) {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.failure = Some((hook.name, caller.described(&error)));
                caller.failed(error);
                None
            }
        }
    }

    /// Calls a hook that answers nothing.
    fn notify(&mut self, ctx: &mut PolicyContext, name: &'static str, with: With<'_>) {
        self.ask(ctx, Hook { name, with, expected: Expected::Nothing }, |_, _| Ok(()));
    }

    /// Calls a hook that may refuse its arguments.
    fn propose(
        &mut self,
        ctx: &mut PolicyContext,
        name: &'static str,
        with: With<'_>,
    ) -> Result<(), Rejected> {
        let answer = self.ask(ctx, Hook { name, with, expected: Expected::Consent }, |_, answer| Ok(answer));
        if answer == Some(Answer::Nothing) { Ok(()) } else { Err(Rejected) }
    }
}

impl<C: Caller> Scheduler for Elsewhere<C> {
    fn rules(&self) -> HostRules {
        HostRules::XEN_4_17
    }

    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        self.notify(ctx, "add_pcpu", With::One(p.0));
    }

    fn add_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        self.notify(ctx, "add_domain", With::One(d.0));
        if !self.defaults.is_empty() {
            // Who refuses a default of his own has none.
            let _ = self.adjust(ctx, d, &self.defaults.clone());
        }
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.notify(ctx, "insert", With::One(v.0));
    }

    fn remove(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.notify(ctx, "remove", With::One(v.0));
    }

    fn remove_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        self.notify(ctx, "remove_domain", With::One(d.0));
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.notify(ctx, "wake", With::One(v.0));
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.notify(ctx, "sleep", With::One(v.0));
    }

    fn yielded(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.notify(ctx, "yielded", With::One(v.0));
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let hook = Hook { name: "schedule", with: With::One(p.0), expected: Expected::Next };
        let read = |ctx: &PolicyContext, answer: Answer| {
            let Answer::Next(next, slice) = answer else { return Ok(None) };
            let next = VcpuId(next);
            let excluded = next.index() < ctx.vcpu_count() && !ctx.affinity(next).contains(p);
            if excluded && !ctx.is_idle(next) {
                let name = called(ctx, next);
                let what = format!("pCPU {} was given {name}, whose affinity excludes it", p.0);
                return Err(Refused::Impossible(what));
            }
            Ok(Some(Decision { next, slice: Slice::from_signed(Span::from_ns(slice)) }))
        };
        let decision = self.ask(ctx, hook, read).flatten();
        decision.unwrap_or(Decision { next: ctx.idle(p), slice: Slice::Unlimited })
    }

    fn context_saved(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.notify(ctx, "context_saved", With::One(v.0));
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        let hook = Hook { name: "pick", with: With::One(v.0), expected: Expected::Pcpu };
        let read = |ctx: &PolicyContext, answer: Answer| match answer {
            Answer::Pcpu(p) => lent::pcpu(ctx, p).map(Some),
            _ => Ok(None),
        };
        self.ask(ctx, hook, read).flatten().unwrap_or(ctx.processor(v))
    }

    fn migrate(&mut self, ctx: &mut PolicyContext, v: VcpuId, p: PcpuId) {
        self.notify(ctx, "migrate", With::Two(v.0, p.0));
    }

    fn timer(&mut self, ctx: &mut PolicyContext, token: u32) {
        self.notify(ctx, "timer", With::One(token));
    }

    fn affinity(&mut self, ctx: &mut PolicyContext, v: VcpuId, mask: &CpuMask) {
        self.notify(ctx, "affinity", With::Pcpus(v.0, mask));
    }

    fn adjust(&mut self, ctx: &mut PolicyContext, d: DomId, params: &Params) -> Result<(), Rejected> {
        self.propose(ctx, "adjust", With::Domain(d.0, params))
    }

    fn adjust_global(&mut self, ctx: &mut PolicyContext, params: &Params) -> Result<(), Rejected> {
        self.propose(ctx, "adjust_global", With::Global(params))
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        let Some(caller) = &self.caller else { return Ok(()) };
        let hook = Hook { name: "dump", with: With::Nothing, expected: Expected::Text };
        match caller.call(&mut ctx.clone(), hook) {
            Ok(Answer::Text(text)) => out.write_str(&text),
            Ok(_) => Ok(()),
            Err(error) => out.write_str(&caller.described(&error)),
        }
    }

    fn failure(&self) -> Option<(&'static str, String)> {
        self.failure.clone()
    }
}

/// The defaults of a pool's scheduler.
fn defaults(pool: &PoolSpec, scope: Scope) -> Params {
    let params = pool.generation.params.iter().filter(|param| param.scope == scope);
    params.fold(Params::new(), |defaults, param| defaults.with(param.name, param.default))
}
