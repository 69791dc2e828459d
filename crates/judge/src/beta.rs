//! The incomplete beta function, of which the distributions of Student and Fisher are cases.

/// Most steps of the continued fraction. It converges in about the square root of the larger parameter.
const STEPS_MAX: u32 = 100_000;
/// Replaces a denominator of 0.
const TINY: f64 = 1e-300;
/// Stirling's series is exact to the last digit from here on.
const STIRLING_FROM: f64 = 24.0;

/// The regularized incomplete beta function I_x(a, b) at x = 1 / (1 + root²), so neither x nor 1 - x loses digits.
///
/// By the continued fraction of DiDonato and Morris 1992, "Significant digit computation of the incomplete beta function
/// ratios", ACM Transactions on Mathematical Software 18, pp. 360-373, of which no term cancels; by I_x(a, b) =
/// 1 - I_(1-x)(b, a) where it converges slowly.
pub(crate) fn incomplete_beta(a: f64, b: f64, root: f64) -> f64 {
    if root <= 0.0 {
        return 1.0;
    }
    let x = 1.0 / (1.0 + root * root);
    if x > (a + 1.0) / (a + b + 2.0) { 1.0 - by_fraction(b, a, 1.0 / root) } else { by_fraction(a, b, root) }
}

/// The function by its continued fraction, without regard to its convergence.
fn by_fraction(a: f64, b: f64, root: f64) -> f64 {
    let ln_power = -a * ln_1_plus_square(root) - b * ln_1_plus_square(1.0 / root);
    let share = |root: f64| 1.0 / (1.0 + root * root);
    libm::exp(ln_power - ln_beta(a, b)) / fraction(a, b, share(root), share(1.0 / root))
}

/// ln(1 + r²), even if the square is too large for a number.
fn ln_1_plus_square(root: f64) -> f64 {
    if root < 1e100 { libm::log1p(root * root) } else { 2.0 * libm::log(root) }
}

/// The continued fraction, evaluated by Lentz's method (Press et al., "Numerical recipes", 3rd edition, section 5.2); y = 1 - x.
fn fraction(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let nonzero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let denominator = |m: f64| {
        m + m * (b - m) * x / (a + 2.0 * m - 1.0)
            + (a + m) * (a * y - b * x + 1.0 + m * (1.0 + y)) / (a + 2.0 * m + 1.0)
    };
    // At m = 0 the second term is 0, whatever a is.
    let mut value = nonzero(a * (a * y - b * x + 1.0) / (a + 1.0));
    let (mut c, mut d) = (value, 0.0);
    for step in 1..STEPS_MAX {
        let m = f64::from(step);
        let root = x / (a + 2.0 * m - 1.0);
        let numerator = (a + m - 1.0) * (a + b + m - 1.0) * m * (b - m) * root * root;
        let denominator = denominator(m);
        d = 1.0 / nonzero(denominator + numerator * d);
        c = nonzero(denominator + numerator / c);
        value *= c * d;
        let change = (c * d - 1.0).abs();
        if change < f64::EPSILON || change.is_nan() {
            break;
        }
    }
    value
}

/// The density of Student's t at t / √degrees = `root`.
pub(crate) fn student_density(degrees: f64, root: f64) -> f64 {
    let ln_power = -(degrees + 1.0) / 2.0 * ln_1_plus_square(root);
    libm::exp(ln_power - ln_beta(degrees / 2.0, 0.5)) / degrees.sqrt()
}

/// ln B(a, b) = ln Γ(a) + ln Γ(b) - ln Γ(a + b). The difference of the two large terms is never taken.
fn ln_beta(a: f64, b: f64) -> f64 {
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    libm::lgamma(small) - ln_gamma_ratio(large, small)
}

/// ln Γ(a + b) - ln Γ(a), by Stirling's series (DLMF 5.11.1) above `STIRLING_FROM`, and the recurrence below it.
fn ln_gamma_ratio(a: f64, b: f64) -> f64 {
    let (mut low, mut product) = (a, 1.0);
    while low < STIRLING_FROM {
        product *= low / (low + b);
        low += 1.0;
    }
    let high = low + b;
    let main = (low - 0.5) * libm::log1p(b / low) + b * (libm::log(high) - 1.0);
    main + stirling(high) - stirling(low) + libm::log(product)
}

/// ln Γ(z) less (z - 1/2) ln z - z + ln(2π)/2.
fn stirling(z: f64) -> f64 {
    let w = 1.0 / (z * z);
    (1.0 / 12.0 - w * (1.0 / 360.0 - w * (1.0 / 1260.0 - w * (1.0 / 1680.0 - w / 1188.0)))) / z
}

/// The probability that Fisher's F with these degrees of freedom (of the numerator, of the denominator) exceeds `f`.
pub fn f_tail(numerator: f64, denominator: f64, f: f64) -> f64 {
    incomplete_beta(denominator / 2.0, numerator / 2.0, (numerator * f / denominator).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_with_a_closed_form() {
        // I_x(a, 1) = x^a; I_x(1, b) = 1 - (1 - x)^b; I_(1/2)(a, a) = 1/2.
        for (a, root) in [(1.0, 2.0), (2.5, 0.7), (40.0, 0.1), (3.0, 1e3)] {
            let power = libm::pow(1.0 + root * root, -a);
            assert!((incomplete_beta(a, 1.0, root) / power - 1.0).abs() < 1e-13, "{a} {root}");
            assert!((incomplete_beta(1.0, a, 1.0 / root) + power - 1.0).abs() < 1e-13, "{a} {root}");
            assert!((incomplete_beta(a, a, 1.0) - 0.5).abs() < 1e-14, "{a}");
        }
        assert_eq!(incomplete_beta(2.0, 3.0, 0.0), 1.0);
        // F with 2 and n degrees: (1 + 2f/n)^(-n/2).
        assert!((f_tail(2.0, 10.0, 3.0) / libm::pow(1.6, -5.0) - 1.0).abs() < 1e-13);
    }
}
