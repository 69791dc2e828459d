//! Corrections of p values for the number of tests.

/// p values corrected for their number (Holm 1979, "A simple sequentially rejective multiple test procedure", Scandinavian
/// Journal of Statistics 6, pp. 65-70).
pub fn holm(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|&a, &b| ps[a].total_cmp(&ps[b]));
    let mut corrected = vec![0.0; ps.len()];
    let mut least = 0.0_f64;
    for (done, index) in order.into_iter().enumerate() {
        least = least.max(((ps.len() - done) as f64 * ps[index]).min(1.0));
        corrected[index] = least;
    }
    corrected
}

/// A p value corrected for a number of tests (Bonferroni).
pub fn bonferroni(p: f64, tests: u32) -> f64 {
    (f64::from(tests) * p).min(1.0)
}
