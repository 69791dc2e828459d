//! Reservations and timetables, and what they promise.

use vcpulab_host::{ParamSpec, ParamValue, ReservationPart, Role};

use crate::domain::DomainSpec;
use crate::host::PoolSpec;
use crate::shares::{param_of, value};

/// An error of sums of shares that does not matter.
const ROUNDING: f64 = 1e-9;

/// CPU time that is reserved for each domain of a pool, in pCPUs; `None` where none is, and for all where the pCPUs may have no room for
/// all reservations: `m` pCPUs have room by global earliest deadline first for a total of `m - (m - 1) * u`, where `u` is the greatest
/// reservation of a vCPU (Goossens, Funk and Baruah 2003).
pub(crate) fn reserved(pool: &PoolSpec, domains: &[&DomainSpec]) -> Vec<Option<f64>> {
    let of = |part: ReservationPart| {
        [Role::Reserved(part), Role::ReservedOnPcpu(part)].into_iter().find_map(|role| param_of(pool, role))
    };
    let (Some(time), Some(period)) = (of(ReservationPart::Time), of(ReservationPart::Period)) else {
        return vec![None; domains.len()];
    };
    let weight = of(ReservationPart::Weight);
    let all: Vec<Option<f64>> =
        domains.iter().map(|domain| of_domain(domain, time, period, weight)).collect();
    // Where vCPUs stay on a pCPU, all of those with a reservation may be on the same one.
    let stay = time.role == Role::ReservedOnPcpu(ReservationPart::Time);
    let stay = stay || domains.iter().any(|domain| domain.affinity.iter().any(Option::is_some));
    let each =
        all.iter().zip(domains).filter_map(|(share, domain)| Some((*share)? / f64::from(domain.vcpus())));
    let pcpus = if stay { 1.0 } else { f64::from(pool.pcpus.len()) };
    let room = pcpus - (pcpus - 1.0) * each.fold(0.0, f64::max);
    if all.iter().flatten().sum::<f64>() > room + ROUNDING { vec![None; domains.len()] } else { all }
}

fn of_domain(
    domain: &DomainSpec,
    time: &ParamSpec,
    period: &ParamSpec,
    weight: Option<&ParamSpec>,
) -> Option<f64> {
    let by_weight = weight.is_some_and(|weight| value(domain, weight) != 0);
    let [time, period] = [time, period].map(|param| value(domain, param));
    (!by_weight && time > 0 && period > 0).then(|| f64::from(domain.vcpus()) * time as f64 / period as f64)
}

/// The slots of each domain of a pool, as a part of the frame, in pCPUs; `None` without a timetable.
pub(crate) fn timetable(pool: &PoolSpec, domains: &[&DomainSpec]) -> Vec<Option<f64>> {
    let slots = param_of(pool, Role::Timetable).and_then(|param| pool.params.get(param.name));
    let frame = param_of(pool, Role::Frame).and_then(|param| pool.params.int(param.name));
    let (Some(ParamValue::Timetable(slots)), Some(frame @ 1..)) = (slots, frame) else {
        return vec![None; domains.len()];
    };
    let of_domain = |domain: &&DomainSpec| {
        let own = slots.iter().filter(|slot| {
            slot.domain == domain.number && (0..i64::from(domain.vcpus())).contains(&slot.vcpu)
        });
        Some(own.map(|slot| slot.runtime.ns() as f64).sum::<f64>() / frame as f64)
    };
    domains.iter().map(of_domain).collect()
}
