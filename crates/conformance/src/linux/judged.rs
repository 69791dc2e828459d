//! The verdict on a replay: do no more decisions differ than are known to?

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;

use super::error::LinuxError;
use super::fair::replay_fair;
use super::folder::Recording;
use super::outcome::Outcome;

/// Of a recording that does not say how many decisions differ, one in this many may. What a recording cannot tell (where the
/// host's own threads stood before it) makes up to 7 % differ in those that `make real-kvm` makes; the other kernel's scheduler
/// differs in a third.
const DIFFERING_ONE_IN: u64 = 10;

/// The least number of decisions of a kind that is judged by itself: a rule of another kernel may show in one kind alone, such as in
/// the ends of requests.
const KIND_LEAST: u64 = 100;

/// A replay, judged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Judged {
    /// The scheduler, and its generation.
    pub scheduler: String,
    /// Result of the replay.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The most decisions that may differ. Of each kind, one in ten may.
    pub differing_max: u64,
    /// Whether the recording says so itself.
    pub expected: bool,
    /// Whether no more do.
    pub passed: bool,
}

/// Replays a recording, and judges it.
///
/// # Errors
/// See [`JudgingError`].
pub fn judged(recording: &Recording) -> Result<Judged, JudgingError> {
    if let Some(refusal) = recording.refusal() {
        return Err(refusal.into());
    }
    let replay = AssertUnwindSafe(|| replay_fair(&recording.setup, &recording.lines));
    let outcome =
        catch_unwind(replay).map_err(|panic| JudgingError::Panic(crate::replay::text_of(&*panic)))??;
    let differing_max = recording.expected.unwrap_or(outcome.decisions / DIFFERING_ONE_IN);
    let (policy, generation) = recording.setup.scheduler();
    Ok(Judged {
        scheduler: format!("{policy} {generation}"),
        passed: outcome.differing <= differing_max && kinds_agree(&outcome),
        differing_max,
        expected: recording.expected.is_some(),
        outcome,
    })
}

/// Whether no more than one in ten decisions of each kind differ.
fn kinds_agree(outcome: &Outcome) -> bool {
    let mut kinds = outcome.by_kind.values().filter(|(all, _)| *all >= KIND_LEAST);
    kinds.all(|(all, differing)| *differing <= all / DIFFERING_ONE_IN)
}

/// The reason why there is no verdict.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JudgingError {
    /// The recording is not one that can be replayed.
    #[error(transparent)]
    Recording(#[from] LinuxError),
    /// The scheduler broke one of its own rules.
    #[error("the scheduler panicked: {0}")]
    Panic(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_decisions_that_all_differ_fails_the_replay() {
        let outcome = |requests| Outcome {
            decisions: 10_000,
            differing: requests,
            by_kind: [("choice", (9_000, 0)), ("request", (900, requests)), ("tick", (99, 99))].into(),
            ..Outcome::default()
        };
        assert!(kinds_agree(&outcome(90)));
        assert!(!kinds_agree(&outcome(91)));
    }
}
