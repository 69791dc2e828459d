//! Sums that are rounded once.

/// The exact sum of values, rounded to the nearest number: Python's `math.fsum` (Shewchuk 1997, "Adaptive precision
/// floating-point arithmetic and fast robust geometric predicates", Discrete & Computational Geometry 18, pp. 305-363).
pub fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    // Numbers that do not overlap, the least first; their sum is exact.
    let mut parts: Vec<f64> = Vec::new();
    for value in values {
        let mut high = value;
        let mut kept = 0;
        for index in 0..parts.len() {
            let (larger, smaller) =
                if high.abs() < parts[index].abs() { (parts[index], high) } else { (high, parts[index]) };
            high = larger + smaller;
            let low = smaller - (high - larger);
            if low != 0.0 {
                parts[kept] = low;
                kept += 1;
            }
        }
        parts.truncate(kept);
        parts.push(high);
    }
    let mut total = parts.pop().unwrap_or(0.0);
    while let Some(part) = parts.pop() {
        let before = total;
        total += part;
        let low = part - (total - before);
        if low == 0.0 {
            continue;
        }
        // The remaining parts decide in the middle between two numbers.
        let next = parts.last().copied().unwrap_or(0.0);
        let doubled = total + 2.0 * low;
        return if low * next > 0.0 && doubled - total == 2.0 * low { doubled } else { total };
    }
    total
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn a_sum_is_rounded_once() {
        assert_eq!(sum([0.1; 10]), 1.0);
        assert_eq!(sum([1e100, 1.0, -1e100]), 1.0);
        assert_eq!(sum([1.0, 2f64.powi(-53), 2f64.powi(-106)]), 1.0 + f64::EPSILON);
        assert_eq!(sum([1.0, 2f64.powi(-53)]), 1.0, "to the even number in the middle");
        assert_eq!(sum([]), 0.0);
    }
}
