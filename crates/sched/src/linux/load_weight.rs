//! Weights of Linux's fair class, and virtual time by them, with the kernel's fixed point.

use vcpulab_host::{Class, Span};

/// The weight of nice 0: 1024 times its plain weight, as all are kept.
pub const NICE_0_LOAD: u64 = 1 << NICE_0_SHIFT;

/// The binary logarithm of the weight of nice 0.
pub const NICE_0_SHIFT: u32 = 20;

/// The plain weight of each nice value from −20 on.
const SCHED_PRIO_TO_WEIGHT: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121,
    2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29,
    23, 18, 15,
];

/// The plain weight of `SCHED_IDLE`, and of groups with `cpu.idle`.
const WEIGHT_IDLEPRIO: u64 = 3;

/// Plain weights of tasks whose inverse is one less than rounding gives.
const INVERSE_ONE_LESS: [u64; 4] = [56, 45, 29, 23];

/// A weight and its inverse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadWeight {
    /// 1024 times the plain weight. That of a group on a CPU need not be a multiple of 1024.
    pub weight: u64,
    inv_weight: u32,
}

impl LoadWeight {
    /// Weight of a task.
    pub fn of_task(class: Class, nice: i8) -> Self {
        if class == Class::Idle {
            return LoadWeight { weight: WEIGHT_IDLEPRIO * 1024, inv_weight: 1_431_655_765 };
        }
        let plain = SCHED_PRIO_TO_WEIGHT[(i32::from(nice) + 20).clamp(0, 39) as usize];
        let rounded = ((1 << 32) + plain / 2) / plain;
        let inverse = rounded - u64::from(INVERSE_ONE_LESS.contains(&plain));
        LoadWeight { weight: plain * 1024, inv_weight: inverse as u32 }
    }

    /// Weight of a group on a CPU, or of a queue's whole load.
    pub fn of_sum(weight: u64) -> Self {
        LoadWeight { weight, inv_weight: (u64::from(u32::MAX) / scale_load_down(weight).max(1)) as u32 }
    }

    /// The shares of a group as a whole, by its `cpu.weight`.
    pub fn shares(cpu_weight: u32, idle: bool) -> u64 {
        let by_weight = (1024 * u64::from(cpu_weight) + 50) / 100;
        1024 * if idle { WEIGHT_IDLEPRIO } else { by_weight }.clamp(2, 262_144)
    }

    /// The plain weight, in which sums and averages are kept.
    pub fn scaled_down(self) -> u64 {
        scale_load_down(self.weight)
    }

    /// The virtual time that passes in `delta` ns.
    pub fn calc_delta_fair(self, delta: u64) -> u64 {
        if self.weight == NICE_0_LOAD { delta } else { self.calc_delta(delta, NICE_0_LOAD) }
    }

    /// `delta · of / self`, as the kernel rounds it.
    pub fn calc_delta(self, delta: u64, of: u64) -> u64 {
        let product = scale_load_down(of) * u64::from(self.inv_weight);
        let dropped = 32u32.saturating_sub(product.leading_zeros());
        ((u128::from(delta) * u128::from(product >> dropped)) >> (32 - dropped)) as u64
    }
}

/// The virtual time that passes in `delta` ns for an entity of a weight, by an exact division, as from 7.1 on.
pub fn div_delta_fair(delta: u64, weight: u64) -> u64 {
    if weight == NICE_0_LOAD {
        return delta;
    }
    let weight = weight.max(1);
    match delta.checked_mul(NICE_0_LOAD) {
        Some(product) => product / weight,
        None => (u128::from(delta) * u128::from(NICE_0_LOAD) / u128::from(weight)) as u64,
    }
}

/// A plain weight: at least 2, but for nothing.
pub fn scale_load_down(weight: u64) -> u64 {
    if weight == 0 { 0 } else { (weight / 1024).max(2) }
}

/// A span of virtual or real time as the fixed point takes it.
pub fn ns(span: Span) -> u64 {
    span.ns().max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_are_the_kernels_own() {
        let inverse = |nice| LoadWeight::of_task(Class::Other, nice).inv_weight;
        assert_eq!([13, 14, 16, 17].map(inverse), [76_695_844, 95_443_717, 148_102_320, 186_737_708]);
        assert_eq!(inverse(0), 4_194_304);
        assert_eq!(LoadWeight::of_task(Class::Idle, 0).inv_weight, 1_431_655_765);
    }

    #[test]
    fn virtual_time_passes_by_weight() {
        assert_eq!(LoadWeight::of_task(Class::Other, 0).calc_delta_fair(4_000_000), 4_000_000);
        assert_eq!(LoadWeight::of_sum(2 * NICE_0_LOAD).calc_delta_fair(4_000_000), 1_999_999);
        assert_eq!(LoadWeight::of_task(Class::Other, 19).calc_delta_fair(15), 1023);
        assert_eq!(LoadWeight::of_sum(3 * NICE_0_LOAD).calc_delta(6_000_000, NICE_0_LOAD), 1_999_999);
    }

    #[test]
    fn shares_follow_cpu_weight() {
        assert_eq!(
            [1, 100, 10_000].map(|w| LoadWeight::shares(w, false)),
            [10 * 1024, NICE_0_LOAD, 102_400 * 1024]
        );
        assert_eq!(LoadWeight::shares(100, true), 3 * 1024);
    }
}
