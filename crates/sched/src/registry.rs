//! The registry: all policies by name.

use vcpulab_host::{HostRules, Params, Scheduler, Scope, Span};

use crate::policy::{Generation, Policy, Registered, generation_of, put_generations};
use crate::proposal::{Proposal, Refusal};
use crate::width::Width;
use crate::xen::{arinc653, atropos, bvt, credit, credit2, enhanced, null, rtds, sedf};
use crate::{linux, round_robin};

/// A task with a scheduler whose type is known only once it is made.
pub trait Runner {
    /// Result of the task.
    type Out;

    /// Takes the scheduler.
    fn run<S: Scheduler + 'static>(self, scheduler: S) -> Self::Out;
}

/// The policy of this name and generation where its type does not matter, such as in a CPU pool. See [`with`].
pub fn boxed(name: &str, generation: &str, global: &Params, pcpus: u32) -> Option<Box<dyn Scheduler>> {
    struct Boxed;
    impl Runner for Boxed {
        type Out = Box<dyn Scheduler>;

        fn run<S: Scheduler + 'static>(self, scheduler: S) -> Self::Out {
            Box::new(scheduler)
        }
    }
    with(name, generation, global, pcpus, Boxed)
}

/// The embedding of a generation of a policy in its host.
pub fn host_rules(name: &str, generation: &str) -> Option<HostRules> {
    struct Rules;
    impl Runner for Rules {
        type Out = HostRules;

        fn run<S: Scheduler + 'static>(self, scheduler: S) -> Self::Out {
            scheduler.rules()
        }
    }
    with(name, generation, &Params::new(), 1, Rules)
}

// A policy of several types has some of its generations from each.
macro_rules! registry {
    ($($first:ty $(| $other:ty)*),* $(,)?) => {
        /// All policies, by name.
        pub fn policies() -> &'static [Policy] {
            const ALL: &[Policy] = &[$({
                type P = $first;
                const COUNT: usize = P::GENERATIONS.len() $(+ <$other>::GENERATIONS.len())*;
                const GENERATIONS: [Generation; COUNT] = {
                    let (all, _count) = put_generations([P::GENERATIONS[0].0; COUNT], 0, P::GENERATIONS);
                    $(let (all, _count) = put_generations(all, _count, <$other>::GENERATIONS);)*
                    all
                };
                Policy {
                    name: P::NAME,
                    doc: P::DOC,
                    leaves_in_place: P::LEAVES_IN_PLACE,
                    decision_cost: P::DECISION_COST,
                    generations: &GENERATIONS,
                }
            }),*];
            ALL
        }

        /// Makes the policy of this name, in a release's version, and passes it to `runner`. `global` holds the global
        /// parameters that were given. `None`: no such policy or generation.
        pub fn with<R: Runner>(name: &str, generation: &str, global: &Params, pcpus: u32, runner: R) -> Option<R::Out> {
            $(
                if let Some(rules) = rules_of::<$first>(name, generation) {
                    return Some(runner.run(<$first>::new(rules, global, pcpus)));
                }
                $(if let Some(rules) = rules_of::<$other>(name, generation) {
                    return Some(runner.run(<$other>::new(rules, global, pcpus)));
                })*
            )*
            None
        }

        /// Checks that a release's version of a policy accepts these values. A policy that is not in the registry
        /// decides when it runs.
        ///
        /// # Errors
        /// [`Refusal`]: why it does not.
        pub fn check(name: &str, generation: &str, proposal: &Proposal<'_>) -> Result<(), Refusal> {
            $(
                if let Some(rules) = rules_of::<$first>(name, generation) {
                    return <$first>::check(rules, proposal);
                }
                $(if let Some(rules) = rules_of::<$other>(name, generation) {
                    return <$other>::check(rules, proposal);
                })*
            )*
            Ok(())
        }

        /// The width of a parameter of a policy in the interface of a release.
        pub fn width(name: &str, generation: &str, param: &str) -> Width {
            $(
                if let Some(rules) = rules_of::<$first>(name, generation) {
                    return <$first>::width(rules, param);
                }
                $(if let Some(rules) = rules_of::<$other>(name, generation) {
                    return <$other>::width(rules, param);
                })*
            )*
            Width::Bits64
        }

        /// The given parameter that makes a policy act most often while no other event happens, and the time from one
        /// act to the next.
        pub fn shortest_interval(
            name: &str,
            generation: &str,
            scope: Scope,
            given: &Params,
        ) -> Option<(&'static str, Span)> {
            $(
                if let Some(rules) = rules_of::<$first>(name, generation) {
                    return <$first>::shortest_interval(rules, scope, given);
                }
                $(if let Some(rules) = rules_of::<$other>(name, generation) {
                    return <$other>::shortest_interval(rules, scope, given);
                })*
            )*
            None
        }
    };
}

/// The rules that a release has, if this is the policy of that name and has it.
fn rules_of<P: Registered>(name: &str, release: &str) -> Option<P::Rules> {
    let generations = P::GENERATIONS.iter().filter(|_| P::NAME == name).map(|(generation, _)| generation);
    generation_of(generations, release).map(|position| P::GENERATIONS[position].1)
}

registry! {
    arinc653::Arinc653,
    atropos::Atropos,
    bvt::xen::Bvt | bvt::acrn::Bvt,
    credit::Credit,
    credit2::Credit2,
    enhanced::Enhanced,
    linux::Linux<linux::Cfs>,
    linux::Linux<linux::Eevdf>,
    null::Null,
    round_robin::RoundRobin,
    rtds::Rtds,
    sedf::Sedf,
}

/// The policy of that name.
pub fn find(name: &str) -> Option<&'static Policy> {
    policies().iter().find(|p| p.name == name)
}
