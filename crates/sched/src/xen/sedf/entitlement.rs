//! The entitlement of a domain, as its parameters state it.

use vcpulab_host::{Params, Span};

use super::params::{EXTRATIME, PERIOD, SLICE, WEIGHT};
use crate::proposal::Refusal;

/// The entitlement of each vCPU of a domain.
#[derive(Clone, Copy, Debug)]
pub struct Entitlement {
    /// Whether the domain takes part in extra time.
    pub extratime: bool,
    /// The share of each vCPU of the domain.
    pub share: Share,
}

/// The share of each vCPU of a domain.
#[derive(Clone, Copy, Debug)]
pub enum Share {
    /// A reservation of a slice in each period.
    Time { period: Span, slice: Span },
    /// A reservation in proportion to a weight.
    ReservedByWeight(i16),
    /// No reservation, but extra time in proportion to a weight.
    ExtraTimeByWeight(i16),
}

impl Entitlement {
    /// The entitlement that these parameters state. A parameter that is left out is 0.
    pub fn among(params: &Params) -> Result<Entitlement, Refusal> {
        let given = |param: &str| params.int(param).unwrap_or(0);
        let (period, slice, weight) = (given(PERIOD.name), given(SLICE.name), given(WEIGHT.name) as i16);
        let extratime = given(EXTRATIME.name) & 1 != 0;
        let share = match weight {
            0 if !fits(period, slice) => {
                let allowed =
                    "a period and a slice of at most the period, or a weight above 0; what is left out is 0";
                return Err(Refusal::new([PERIOD.name, SLICE.name, WEIGHT.name], allowed));
            }
            0 => Share::Time { period: Span::from_ns(period), slice: Span::from_ns(slice) },
            weight if extratime && period == 0 => Share::ExtraTimeByWeight(weight),
            weight => Share::ReservedByWeight(weight),
        };
        Ok(Entitlement { extratime, share })
    }
}

/// Whether a period and a slice are a reservation.
fn fits(period: i64, slice: i64) -> bool {
    // Other numbers that a policy can be given are outside the ranges, 0 included.
    period != 0 && slice != 0 && PERIOD.kind.allows(period) && SLICE.kind.allows(slice) && slice <= period
}
