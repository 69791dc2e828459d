//! Work on the items of a list by several threads. Results do not depend on the number of threads.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, available_parallelism, scope};

/// The results of `work` for all items, in the order of the items.
///
/// Items are started in their order by `jobs` threads (0: one for each processor), the calling one among them: a free thread takes
/// the next item, because one item may take much longer than another. Where the system refuses a thread, the others do its work.
///
/// ```
/// assert_eq!(vcpulab_parallel::map(&[1, 2, 3], 2, |number| number * 10), [10, 20, 30]);
/// ```
///
/// # Panics
/// When `work` panics.
pub fn map<T: Sync, R: Send>(items: &[T], jobs: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let jobs = if jobs == 0 { available_parallelism().map_or(1, NonZero::get) } else { jobs };
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        items.get(index).map(|item| (index, work(item)))
    };
    let work_through = || std::iter::from_fn(take).collect::<Vec<(usize, R)>>();
    let mut results = scope(|scope| {
        let helpers: Vec<_> = (1..jobs.min(items.len()))
            .map_while(|_| Builder::new().spawn_scoped(scope, work_through).ok())
            .collect();
        let mut results = work_through();
        for helper in helpers {
            results.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items_whatever_the_number_of_threads() {
        let items: Vec<usize> = (0..100).collect();
        for jobs in [0, 1, 2, 7, 200] {
            assert_eq!(map(&items, jobs, |&item| item), items);
        }
        assert_eq!(map(&[], 3, |&item: &usize| item), [0; 0]);
    }

    #[test]
    fn as_many_items_as_threads_are_in_work_at_once() {
        let all_started = Barrier::new(3);
        map(&[(); 3], 3, |()| all_started.wait());
    }

    #[test]
    #[should_panic(expected = "item 1")]
    fn a_panic_is_that_of_the_work() {
        map(&[0, 1, 2, 3], 2, |item| assert_ne!(*item, 1, "item 1"));
    }
}
