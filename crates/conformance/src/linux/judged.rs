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

/// A replay, judged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Judged {
    /// The scheduler, and its generation.
    pub scheduler: String,
    /// Result of the replay.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The most decisions that may differ.
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
        passed: outcome.differing <= differing_max,
        differing_max,
        expected: recording.expected.is_some(),
        outcome,
    })
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
