//! Judges the difference of two runs, for the Python front and the browser alike: numbers in, verdicts and their wording out.
//!
//! Both runs have the same seed, so replication i of one meets the same arrivals and sizes as replication i of the other
//! (common random numbers). Differences are taken replication by replication, with Student's interval of their mean (Law 2015,
//! "Simulation modeling and analysis", sections 10.2 and 11.2). [`compare`] corrects each p value for the number of metrics of
//! its family ([`holm`]) and for the number of looks ([`Stopping`], [`bonferroni`]), and makes one [`Comparison`] of each metric, which
//! knows whether its difference matters. [`words`] puts comparisons into lines of text. [`starvation`] tells which domains starve, in a run
//! or since a change.
//!
//! ```
//! use vcpulab_judge::{Interval, holm, paired};
//! let gain = paired(&[5.0, 6.0, 7.0], &[1.0, 2.5, 2.9]).unwrap();
//! assert!(gain.interval.mean > 3.8 && gain.p.unwrap() < 0.01);
//! assert_eq!(Interval::of([10.0, 12.0, 14.0]).unwrap().to_string(), "12.0 ± 5.0");
//! assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
//! ```

mod beta;
mod compare;
mod comparison;
mod corrections;
mod interval;
mod looks;
mod metric;
pub mod names;
mod numbers;
pub mod starvation;
pub mod student;
mod sum;
pub mod words;

pub use beta::f_tail;
pub use compare::{Lengths, Measured, compare};
pub use comparison::{Comparison, NoValue, Verdict};
pub use corrections::{bonferroni, holm};
pub use interval::{CONFIDENCE, Difference, Interval, paired};
pub use looks::Stopping;
pub use metric::{Better, Kind, Metric};
pub use numbers::number;
pub use sum::sum;
