//! Preemption models (`preempt=`): the time at which a flag of the fair class is served on a busy CPU.

/// A preemption model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Preempt {
    /// `PREEMPT_NONE`.
    None,
    /// `PREEMPT_VOLUNTARY`.
    Voluntary,
    /// `PREEMPT`: the kernel's own code is preempted, too.
    Full,
    /// `PREEMPT_LAZY`: flags of the fair class are served on return to user or guest mode; a thread in the kernel continues to the
    /// next tick. The decision reads the clock again.
    Lazy,
}

impl Preempt {
    const ALL: [Preempt; 4] = [Preempt::None, Preempt::Voluntary, Preempt::Full, Preempt::Lazy];

    /// The kernel's words.
    const NAMES: [&'static str; 4] = ["none", "voluntary", "full", "lazy"];

    /// The model of that name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    /// The kernel's word.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// The preemption models of a kernel: neighbors in [`Preempt::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PreemptModels {
    first: Preempt,
    last: Preempt,
    /// The model of a kernel of Debian.
    usual: Preempt,
}

impl PreemptModels {
    /// Models up to 6.12, and of other kernels without the lazy model.
    pub const WITHOUT_LAZY: PreemptModels =
        PreemptModels { first: Preempt::None, last: Preempt::Full, usual: Preempt::Voluntary };

    /// Models of 6.12 to 6.16; the lazy model exists from 6.13 on.
    pub const WITH_LAZY: PreemptModels = PreemptModels { last: Preempt::Lazy, ..PreemptModels::WITHOUT_LAZY };

    /// Models of 6.17 to 6.19.
    pub const LAZY_BY_DEFAULT: PreemptModels =
        PreemptModels { usual: Preempt::Lazy, ..PreemptModels::WITH_LAZY };

    /// Models from 7.0 on.
    pub const FULL_OR_LAZY: PreemptModels =
        PreemptModels { first: Preempt::Full, ..PreemptModels::LAZY_BY_DEFAULT };

    /// The models' names.
    pub const fn names(self) -> &'static [&'static str] {
        let (names, _) = Preempt::NAMES.split_at(self.last as usize + 1);
        names.split_at(self.first as usize).1
    }

    /// The place of the usual model among the names.
    pub const fn default(self) -> i64 {
        self.usual as i64 - self.first as i64
    }

    /// The model at a place among the names.
    pub fn at(self, place: i64) -> Preempt {
        let place = usize::try_from(place).ok().map(|place| place + self.first as usize);
        place.and_then(|place| Preempt::ALL.get(place).copied()).unwrap_or(self.usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_models() {
        let models = [
            (PreemptModels::WITHOUT_LAZY, 3, Preempt::Voluntary),
            (PreemptModels::WITH_LAZY, 4, Preempt::Voluntary),
            (PreemptModels::LAZY_BY_DEFAULT, 4, Preempt::Lazy),
            (PreemptModels::FULL_OR_LAZY, 2, Preempt::Lazy),
        ];
        for (models, count, usual) in models {
            let names = models.names();
            assert_eq!((names.len(), models.at(models.default())), (count, usual));
            for (place, name) in (0..).zip(names) {
                assert_eq!(format!("{:?}", models.at(place)).to_lowercase(), *name);
            }
        }
        assert_eq!(PreemptModels::FULL_OR_LAZY.names(), ["full", "lazy"]);
    }
}
