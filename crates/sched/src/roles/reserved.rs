//! Reservations and timetables, and what they promise.

use vcpulab_host::{ParamValue, Params};

use super::member::Member;
use crate::param_spec::ParamSpec;
use crate::policy::Generation;
use crate::role::{ReservationPart, ReservedOn, Role};

/// An error of sums of shares that does not matter.
const ROUNDING: f64 = 1e-9;

/// The parameters of a domain that reserve CPU time for each of its vCPUs.
pub(super) struct Reservation {
    time: &'static ParamSpec,
    period: &'static ParamSpec,
    weight: Option<&'static ParamSpec>,
    on: ReservedOn,
}

impl Reservation {
    /// CPU time that is reserved for each domain of a pool, in pCPUs; `None`: none is reserved. All are `None` if the pCPUs may have no
    /// room for all reservations: `m` pCPUs have room by global earliest deadline first for a total of `m - (m - 1) * u`, where `u` is the
    /// greatest reservation of a vCPU (Goossens, Funk and Baruah 2003).
    pub fn promised(&self, pcpus: u32, members: &[Member<'_>]) -> Vec<Option<f64>> {
        let all: Vec<Option<f64>> = members.iter().map(|member| self.of(member)).collect();
        // Where vCPUs stay on a pCPU, all of those with a reservation may be on the same one.
        let stay = self.on == ReservedOn::OwnPcpu || members.iter().any(|member| member.pinned);
        let each =
            all.iter().zip(members).filter_map(|(share, member)| Some((*share)? / f64::from(member.vcpus)));
        let pcpus = if stay { 1.0 } else { f64::from(pcpus) };
        let room = pcpus - (pcpus - 1.0) * each.fold(0.0, f64::max);
        let fits = all.iter().flatten().sum::<f64>() <= room + ROUNDING;
        if fits { all } else { vec![None; members.len()] }
    }

    /// CPU time that is reserved for a domain.
    fn of(&self, member: &Member<'_>) -> Option<f64> {
        let by_weight = self.weight.is_some_and(|weight| weight.number_in(member.params) != 0);
        let [time, period] = [self.time, self.period].map(|param| param.number_in(member.params));
        (!by_weight && time > 0 && period > 0).then(|| f64::from(member.vcpus) * time as f64 / period as f64)
    }
}

impl Generation {
    /// The CPU time of each vCPU of a domain by the reservation that its parameters give, in pCPUs; infinite: they give none.
    pub fn reserved(&self, params: &Params) -> f64 {
        let given = |wanted: fn(ReservationPart) -> bool| {
            let is_wanted = |role| matches!(role, Role::Reserved(part, _) if wanted(part));
            let param = self.params.iter().find(|param| is_wanted(param.role))?;
            params.int(param.name).filter(|&value| value > 0)
        };
        let time = given(|part| matches!(part, ReservationPart::Time { .. }));
        let period = given(|part| matches!(part, ReservationPart::Period { .. }));
        time.zip(period).map_or(f64::INFINITY, |(time, period)| time as f64 / period as f64)
    }

    /// The parameters that reserve CPU time, if there are such.
    pub(super) fn reservation(&self) -> Option<Reservation> {
        let part = |wanted: fn(ReservationPart) -> bool| {
            self.params.iter().find_map(|param| match param.role {
                Role::Reserved(part, on) if on != ReservedOn::Nothing && wanted(part) => Some((param, on)),
                _ => None,
            })
        };
        let (time, on) = part(|part| matches!(part, ReservationPart::Time { .. }))?;
        let (period, _) = part(|part| matches!(part, ReservationPart::Period { .. }))?;
        let weight = part(|part| part == ReservationPart::Weight).map(|(param, _)| param);
        Some(Reservation { time, period, weight, on })
    }

    /// The slots of each domain of a pool, as a part of the frame, in pCPUs; `None` without a timetable.
    pub(super) fn timetable(&self, global: &Params, members: &[Member<'_>]) -> Vec<Option<f64>> {
        let slots = self.param_of(Role::Timetable).and_then(|param| global.get(param.name));
        let frame = self.param_of(Role::Frame).and_then(|param| global.int(param.name));
        let (Some(ParamValue::Timetable(slots)), Some(frame @ 1..)) = (slots, frame) else {
            return vec![None; members.len()];
        };
        let of_member = |member: &Member<'_>| {
            let own = slots.iter().filter(|slot| {
                slot.domain == member.number && (0..i64::from(member.vcpus)).contains(&slot.vcpu)
            });
            Some(own.map(|slot| slot.runtime.ns() as f64).sum::<f64>() / frame as f64)
        };
        members.iter().map(of_member).collect()
    }
}
