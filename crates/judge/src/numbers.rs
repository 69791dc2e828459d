//! Numbers as text, with the digits that their size or their interval deserves.

/// Most decimals.
const DECIMALS_MAX: i32 = 6;

/// A value with three significant digits.
///
/// ```
/// use vcpulab_judge::number;
/// assert_eq!([number(1234.5678), number(0.0123456), number(0.0)], ["1235", "0.0123", "0"]);
/// ```
pub fn number(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { fixed(value, decimals(value, 3)) }
}

/// A value with a number of decimals; the middle between two is rounded to the even digit.
pub(crate) fn fixed(value: f64, places: usize) -> String {
    format!("{value:.places$}")
}

/// A difference with its sign.
pub(crate) fn signed(text: String) -> String {
    if text.starts_with('-') || text == "0" || text == "0 ± 0" { text } else { format!("+{text}") }
}

/// Number of decimals for `digits` significant digits of the value, at most `DECIMALS_MAX`.
pub(crate) fn decimals(value: f64, digits: i32) -> usize {
    if value == 0.0 {
        return DECIMALS_MAX as usize;
    }
    let places = digits - 1 - libm::log10(value.abs()).floor() as i32;
    places.clamp(0, DECIMALS_MAX) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_depend_on_the_size() {
        let texts = [0.0001234, 0.999, 9.994, 9.996, 99.96, 1e9, -12.345, 1e-9].map(number);
        assert_eq!(texts, ["0.000123", "0.999", "9.99", "10.00", "100.0", "1000000000", "-12.3", "0.000000"]);
        assert_eq!(
            [fixed(0.5, 0), fixed(2.5, 0), fixed(0.125, 2), fixed(0.375, 2)],
            ["0", "2", "0.12", "0.38"]
        );
        for exponent in -300..=300 {
            let power: f64 = format!("1e{exponent}").parse().unwrap();
            assert_eq!(libm::log10(power).floor(), f64::from(exponent), "{power}");
        }
    }
}
