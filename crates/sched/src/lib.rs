//! CPU scheduling policies, one file each, and the registry that everything else finds them in.
//!
//! A new policy is one new file that implements [`Scheduler`] and [`Registered`], and one line in [`registry!`] below.
//! Parameter checks, help, schema and documentation follow from its [`ParamSpec`] tables.

pub mod arinc653;
pub mod atropos;
pub mod bvt;
pub mod credit;
pub mod credit2;
pub mod enhanced;
pub mod null;
pub mod round_robin;
pub mod rtds;
pub mod sedf;
pub mod toolstack;

mod list;
mod table;

pub use toolstack::{Set, Toolstack};
use vcpulab_host::{ParamSpec, Params, Scheduler};

/// One policy.
#[derive(Debug)]
pub struct Policy {
    /// Its name in scenarios and vectors.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// Its generations, oldest first; the last is the default.
    pub generations: &'static [Generation],
}

/// One generation of a policy: what one release of the hypervisor shipped.
#[derive(Debug)]
pub struct Generation {
    /// Its name, such as `xen4.17`.
    pub name: &'static str,
    /// Its parameters, global and per domain.
    pub params: &'static [ParamSpec],
    /// Does it never leave a pCPU idle while a vCPU that may run there waits (uncapped, and one decision later)?
    pub work_conserving: bool,
    /// Does it honour hard affinity? (Some releases do not look at it.)
    pub hard_affinity: bool,
    /// How a real host is told.
    pub toolstack: Toolstack,
}

impl Policy {
    /// The generation of that name.
    pub fn generation(&self, name: &str) -> Option<&'static Generation> {
        self.generations.iter().find(|g| g.name == name)
    }

    /// The generation used when none is named: the newest.
    pub fn default_generation(&self) -> &'static Generation {
        self.generations.last().expect("a policy has a generation")
    }
}

/// A scheduler that the registry can make.
pub trait Registered: Scheduler + Sized {
    /// Its description.
    const POLICY: Policy;

    /// Makes it for a host with `pcpus` pCPUs. `generation` is an index into [`Policy::generations`]; `global` holds
    /// those of its global parameters that were given.
    fn new(generation: usize, global: &Params, pcpus: u32) -> Self;
}

/// What to do with a scheduler once its type is known.
pub trait Runner {
    /// What comes of it.
    type Out;

    /// Called with the scheduler made.
    fn run<S: Scheduler + 'static>(self, scheduler: S) -> Self::Out;
}

/// The policy of that name and generation where its type does not matter, such as in a CPU pool. As [`with`].
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

macro_rules! registry {
    ($($policy:ty),* $(,)?) => {
        /// All policies, by name.
        pub fn policies() -> &'static [Policy] {
            const ALL: &[Policy] = &[$(<$policy as Registered>::POLICY),*];
            ALL
        }

        /// Makes the policy of that name and generation and hands it to `runner`. `global` holds those of its global
        /// parameters that were given. `None`: no such policy or generation.
        pub fn with<R: Runner>(name: &str, generation: &str, global: &Params, pcpus: u32, runner: R) -> Option<R::Out> {
            $(
                let policy = &<$policy as Registered>::POLICY;
                if policy.name == name {
                    let index = policy.generations.iter().position(|g| g.name == generation)?;
                    return Some(runner.run(<$policy as Registered>::new(index, global, pcpus)));
                }
            )*
            None
        }
    };
}

registry! {
    arinc653::Arinc653,
    atropos::Atropos,
    bvt::Bvt,
    credit::Credit,
    credit2::Credit2,
    enhanced::Enhanced,
    null::Null,
    round_robin::RoundRobin,
    rtds::Rtds,
    sedf::Sedf,
}

/// The policy of that name.
pub fn find(name: &str) -> Option<&'static Policy> {
    policies().iter().find(|p| p.name == name)
}
