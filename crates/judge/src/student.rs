//! Student's t distribution (Student 1908, "The probable error of a mean", Biometrika 6, pp. 1-25).

use crate::beta::{incomplete_beta, student_density};

/// Most steps to a quantile. A handful are enough from the first guess.
const STEPS_MAX: u32 = 100;

/// The quantile, in roots of the degrees of freedom, from which on the leading term of the tail has several digits.
const FAR: f64 = 100.0;

/// The probability that t with these degrees of freedom is at most `t`.
pub fn cdf(degrees: f64, t: f64) -> f64 {
    if t <= 0.0 { both_tails(degrees, t) / 2.0 } else { 1.0 - both_tails(degrees, t) / 2.0 }
}

/// The probability that t with these degrees of freedom is at least as far from 0 as `t`.
pub fn both_tails(degrees: f64, t: f64) -> f64 {
    incomplete_beta(degrees / 2.0, 0.5, t.abs() / degrees.sqrt())
}

/// The probability that t with these degrees of freedom is closer to 0 than `t`.
fn center(degrees: f64, t: f64) -> f64 {
    incomplete_beta(0.5, degrees / 2.0, degrees.sqrt() / t)
}

/// The quantile of t with these degrees of freedom: the t that `probability` is below; infinite for 0 and 1.
pub fn quantile(degrees: f64, probability: f64) -> f64 {
    let beyond = probability.min(1.0 - probability);
    if !(beyond >= 0.0 && degrees > 0.0) {
        return f64::NAN;
    }
    let sign = if probability < 0.5 { -1.0 } else { 1.0 };
    // Near the middle what is inside has more digits than what is outside.
    let inside = 2.0 * (probability - 0.5).abs();
    if inside == 0.0 || beyond == 0.0 {
        return if inside == 0.0 { 0.0 } else { sign * f64::INFINITY };
    }
    sign * if inside < 0.5 {
        solved(degrees, guess(degrees, beyond), inside, 1.0, |t| center(degrees, t))
    } else {
        solved(degrees, guess(degrees, beyond), 2.0 * beyond, -1.0, |t| both_tails(degrees, t))
    }
}

/// The t at which a probability, which grows or falls (`slope` 1 or -1) by twice the density, has a value: Newton's method
/// on logarithms, where both probabilities are concave.
fn solved(degrees: f64, guess: f64, value: f64, slope: f64, probability: impl Fn(f64) -> f64) -> f64 {
    let mut t = guess;
    for _ in 0..STEPS_MAX {
        let reached = probability(t);
        let elasticity = slope * 2.0 * student_density(degrees, t.abs() / degrees.sqrt()) * t / reached;
        let step = libm::log(value / reached) / elasticity;
        if !step.is_finite() {
            break;
        }
        t *= libm::exp(step);
        if step.abs() < 2.0 * f64::EPSILON {
            break;
        }
    }
    t
}

/// A quantile to a few digits, for a small probability `beyond` it: Wallace's (1959) approximation by a normal quantile, which is
/// that of Abramowitz and Stegun (1964), formula 26.2.23. It is far too large where few degrees of freedom meet a tiny
/// probability. There the leading term of the tail, c·t^-degrees, is used: it exceeds the tail, and so its quantile is a bound.
fn guess(degrees: f64, beyond: f64) -> f64 {
    let s = (-2.0 * libm::log(beyond)).sqrt();
    let z = s
        - (2.515517 + s * (0.802853 + s * 0.010328)) / (1.0 + s * (1.432788 + s * (0.189269 + s * 0.001308)));
    let z = z.max(1e-9) * (8.0 * degrees + 3.0) / (8.0 * degrees + 1.0);
    let wallace = (degrees * libm::expm1((z * z / degrees).min(700.0))).sqrt();
    if wallace < FAR * degrees.sqrt() { wallace } else { wallace.min(tail_bound(degrees, beyond)) }
}

/// The quantile by the leading term of the tail: Γ((ν+1)/2) ν^(ν/2-1) / (√π Γ(ν/2)) t^-ν for ν degrees.
fn tail_bound(degrees: f64, beyond: f64) -> f64 {
    let gammas = libm::lgamma((degrees + 1.0) / 2.0) - libm::lgamma(degrees / 2.0);
    let log_c = gammas + (degrees / 2.0 - 1.0) * libm::log(degrees) - libm::log(std::f64::consts::PI) / 2.0;
    libm::exp((log_c - libm::log(beyond)) / degrees)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_and_two_degrees_have_closed_forms() {
        for t in [1e-8, 0.01, 0.5, 1.0, 1.5, 3.0, 40.0, 1e6] {
            let cauchy = 2.0 * libm::atan(1.0 / t) / std::f64::consts::PI;
            assert!((both_tails(1.0, t) / cauchy - 1.0).abs() < 1e-13, "{t}");
            let root = (2.0 + t * t).sqrt();
            let two = 2.0 / (root * (root + t));
            assert!((both_tails(2.0, t) / two - 1.0).abs() < 1e-13, "{t}");
        }
        assert!((quantile(1.0, 0.75) - 1.0).abs() < 1e-14);
        assert_eq!(quantile(5.0, 0.5), 0.0);
        assert_eq!(quantile(5.0, 1.0), f64::INFINITY);
        assert!(quantile(5.0, 1.5).is_nan());
    }

    proptest! {
        #[test]
        fn a_quantile_is_where_its_probability_is(
            degrees in prop_oneof![(1u32..200).prop_map(f64::from), 1.0..1e7f64],
            exponent in -250.0..-0.31f64,
        ) {
            let beyond = libm::pow(10.0, exponent);
            let t = -quantile(degrees, beyond);
            prop_assert!((both_tails(degrees, t) / 2.0 / beyond - 1.0).abs() < 1e-11, "{t}");
            prop_assert!(quantile(degrees, 1.0 - 0.4 * libm::exp(exponent)) > 0.0);
        }

        #[test]
        fn the_distribution_is_symmetric_and_grows(degrees in 1.0..1e5f64, t in -1e3..1e3f64, more in 1e-6..1e3f64) {
            prop_assert!((cdf(degrees, t) + cdf(degrees, -t) - 1.0).abs() < 1e-15);
            prop_assert!(cdf(degrees, t) <= cdf(degrees, t + more));
        }
    }
}
