//! The parameters of the whole scheduler that change while the host runs.

use vcpulab_host::{Params, Span};

use super::params::{MIGRATION_DELAY, RATELIMIT, TSLICE};
use super::rules::Rules;
use crate::param_spec::ParamSpec;
use crate::params::{MS, US};
use crate::proposal::Refusal;

/// Parameters whose values depend on each other.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    pub tslice: Span,
    pub ratelimit: Span,
    pub migration_delay: Span,
}

impl Tuning {
    /// The values of a new host.
    pub const NEW: Tuning = Tuning {
        tslice: Span::from_ms(TSLICE.default),
        ratelimit: Span::from_us(RATELIMIT.default),
        migration_delay: Span::from_us(MIGRATION_DELAY.default),
    };

    /// The tuning with the given values changed.
    pub fn adjusted(self, rules: &Rules, given: &Params) -> Result<Tuning, Refusal> {
        let value = |param: &ParamSpec, present: i64| given.int(param.name).unwrap_or(present);
        let tslice = value(&TSLICE, self.tslice / MS);
        let ratelimit = value(&RATELIMIT, self.ratelimit / US);
        let delay = value(&MIGRATION_DELAY, self.migration_delay / US);
        let checked = [(&TSLICE, tslice), (&RATELIMIT, ratelimit), (&MIGRATION_DELAY, delay)];
        let checked = if rules.checks_migration_delay { &checked[..] } else { &checked[..2] };
        if let Some((param, _)) = checked.iter().find(|(param, value)| !param.kind.allows(*value)) {
            return Err(Refusal::new([param.name], param.kind.allowed()));
        }
        if ratelimit * US > tslice * MS {
            return Err(Refusal::new([RATELIMIT.name, TSLICE.name], "a rate limit of at most the timeslice"));
        }
        let migration_delay = US.saturating_mul(delay);
        Ok(Tuning { tslice: tslice * MS, ratelimit: ratelimit * US, migration_delay })
    }
}
