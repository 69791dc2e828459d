//! The files of SPECweb99's static content, from which a client of a web server can choose what it asks for.
//!
//! A directory has 36 files: nine sizes in each of four classes, the sizes of a class being the multiples of its first.
//! A set of files is a number of equal directories. Benevenuto 2006, Table 5.1, has 61 of them: 2196 files.

/// A size of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileSize {
    /// Bytes.
    pub bytes: u32,
    /// Number of files of a directory that have it.
    pub files: u32,
    /// Frequency relative to the other sizes.
    pub requests: u32,
}

/// Requests for files of each class, percent: less than 1 KB, less than 10 KB, less than 100 KB, up to 900 KB
/// (Ruan and Pai, USENIX 2006, section on workloads).
const CLASS_PERCENT: [u32; 4] = [35, 50, 14, 1];

/// Files of each class in a directory.
const CLASS_FILES: usize = 9;

/// All sizes, the smallest first. Within a class all are asked for equally often, which keeps the mean of the class; the
/// benchmark itself prefers some.
pub const SIZES: [FileSize; 36] = sizes();

const fn sizes() -> [FileSize; 36] {
    let mut sizes = [FileSize { bytes: 0, files: 1, requests: 0 }; 36];
    let mut index = 0;
    while index < sizes.len() {
        let class = index / CLASS_FILES;
        let multiple = (index % CLASS_FILES + 1) as u32;
        // The first class goes up in tenths of a KB.
        sizes[index].bytes = multiple * 1024 * 10u32.pow(class as u32) / 10;
        sizes[index].requests = CLASS_PERCENT[class];
        index += 1;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean, KB, and coefficient of variation of the sizes with these weights.
    fn moments(weight: fn(&FileSize) -> u32) -> (f64, f64) {
        let total: f64 = SIZES.iter().map(|size| f64::from(weight(size))).sum();
        let moment = |power| {
            let sum = SIZES
                .iter()
                .map(|size| f64::from(weight(size)) * (f64::from(size.bytes) / 1024.0).powi(power));
            sum.sum::<f64>() / total
        };
        let mean = moment(1);
        (mean, (moment(2) - mean * mean).sqrt() / mean)
    }

    #[test]
    fn the_set_of_files_has_the_published_mean_and_variation() {
        let (mean, variation) = moments(|size| size.files);
        assert!((mean - 138.87).abs() < 0.01, "{mean} KB; Benevenuto 2006, Table 5.1");
        assert!((variation - 1.77).abs() < 0.005, "{variation}; Benevenuto 2006, Table 5.1");
        assert_eq!(2196 % SIZES.len(), 0, "whole directories");
        assert!(SIZES.is_sorted_by_key(|size| size.bytes) && SIZES[35].bytes == 900 << 10);
    }

    #[test]
    fn requests_prefer_small_files() {
        let total: u32 = SIZES.iter().map(|size| size.requests).sum();
        let below = |kb: u32| {
            SIZES.iter().filter(|size| size.bytes < kb << 10).map(|size| size.requests).sum::<u32>()
        };
        assert_eq!([1, 10, 100].map(|kb| 100 * below(kb) / total), [35, 85, 99]);
        let (mean, _) = moments(|size| size.requests);
        assert!((14.0..15.0).contains(&mean), "{mean} KB; Ruan and Pai 2006: roughly 14");
    }
}
