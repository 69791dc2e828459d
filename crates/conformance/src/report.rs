//! Runs vectors, folders of them and trees of folders, and says for each folder how many agree.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::recording::{read_state, read_trace};
use crate::replay::{Divergence, replay};
use crate::vector::{FILE_MAX, read_vector};

/// Most vectors in one run, and deepest nesting of folders.
const VECTORS_MAX: usize = 100_000;
const DEPTH_MAX: usize = 16;

/// The outcome of one vector.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// Every row agrees.
    Passed {
        /// Rows of the trace.
        decisions: usize,
    },
    /// A row differs.
    Failed(Box<Divergence>),
    /// The vector cannot be run here.
    Skipped {
        /// The reason.
        reason: String,
    },
}

/// The outcome of a vector, with its name.
#[derive(Clone, Debug, Serialize)]
pub struct VectorReport {
    /// The name of its file, without the ending.
    pub name: String,
    /// Outcome of the vector.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The outcomes of a folder.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FolderReport {
    /// Path of the folder.
    pub folder: PathBuf,
    /// Vectors that agree.
    pub passed: usize,
    /// Vectors that do not.
    pub failed: usize,
    /// Vectors that cannot be run here.
    pub skipped: usize,
    /// Vectors of the folder, by name.
    pub vectors: Vec<VectorReport>,
}

/// The outcomes of all folders.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Vectors that agree.
    pub passed: usize,
    /// Vectors that do not.
    pub failed: usize,
    /// Vectors that cannot be run here.
    pub skipped: usize,
    /// By path.
    pub folders: Vec<FolderReport>,
}

/// A vector that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {message}", path.display())]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// The problem.
    pub message: String,
}

/// Runs every vector at or below these paths with `jobs` threads (0: one for each core); their number does not change
/// the report.
///
/// # Errors
/// All files that cannot be read, or the paths at which there is no vector.
pub fn run_paths(paths: &[PathBuf], jobs: usize) -> Result<Report, Vec<Unreadable>> {
    let mut files = Vec::new();
    for path in paths {
        let before = files.len();
        find(path, 0, &mut files).map_err(|failure| vec![failure])?;
        if files.len() == before {
            return Err(vec![Unreadable {
                path: path.clone(),
                message: "there is no vector (`*.json`) here".into(),
            }]);
        }
    }
    files.sort();
    files.dedup();
    let outcomes = vcpulab_parallel::map(&files, jobs, |file| run_file(file));
    let mut folders: BTreeMap<PathBuf, FolderReport> = BTreeMap::new();
    let mut unreadable = Vec::new();
    for (file, outcome) in files.iter().zip(outcomes) {
        match outcome {
            Ok(outcome) => {
                let folder = file.parent().unwrap_or(Path::new("")).to_owned();
                let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                folders.entry(folder).or_default().add(VectorReport { name, outcome });
            }
            Err(failure) => unreadable.push(failure),
        }
    }
    if !unreadable.is_empty() {
        return Err(unreadable);
    }
    let mut report = Report::default();
    for (path, folder) in folders {
        report.passed += folder.passed;
        report.failed += folder.failed;
        report.skipped += folder.skipped;
        report.folders.push(FolderReport { folder: path, ..folder });
    }
    Ok(report)
}

impl FolderReport {
    fn add(&mut self, vector: VectorReport) {
        match vector.outcome {
            Outcome::Passed { .. } => self.passed += 1,
            Outcome::Failed(_) => self.failed += 1,
            Outcome::Skipped { .. } => self.skipped += 1,
        }
        self.vectors.push(vector);
    }
}

fn find(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Unreadable> {
    let failed = |message: String| Unreadable { path: path.to_owned(), message };
    if !path.is_dir() {
        if !path.exists() {
            return Err(failed("no such file or folder".into()));
        }
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path).map_err(|failure| failed(failure.to_string()))?;
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            if depth == DEPTH_MAX {
                return Err(failed(format!("folders are nested more than {DEPTH_MAX} deep")));
            }
            find(&entry, depth + 1, files)?;
        } else if entry.extension().is_some_and(|ending| ending == "json") {
            files.push(entry);
        }
        if files.len() > VECTORS_MAX {
            return Err(failed(format!("more than {VECTORS_MAX} vectors")));
        }
    }
    Ok(())
}

fn run_file(file: &Path) -> Result<Outcome, Unreadable> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |message: String| Unreadable { path, message }
    };
    let size = std::fs::metadata(file).map_err(|failure| at(file)(failure.to_string()))?.len();
    if size > FILE_MAX as u64 {
        return Err(at(file)(format!("is {size} bytes long; at most {FILE_MAX} are allowed")));
    }
    let bytes = std::fs::read(file).map_err(|failure| at(file)(failure.to_string()))?;
    let vector = read_vector(&bytes).map_err(|failure| at(file)(failure.to_string()))?;
    if let Some(reason) = vector.skipped {
        return Ok(Outcome::Skipped { reason });
    }
    let trace_file = file.with_extension("trace.csv.gz");
    let trace = read_trace(&trace_file).map_err(at(&trace_file))?;
    let state_file = file.with_extension("state.csv.gz");
    let state = state_file.exists().then(|| read_state(&state_file).map_err(at(&state_file))).transpose()?;
    Ok(match replay(&vector, &trace, state.as_deref()) {
        None => Outcome::Passed { decisions: trace.len() },
        Some(divergence) => Outcome::Failed(Box::new(divergence)),
    })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for folder in &self.folders {
            let name = folder.folder.file_name().unwrap_or_default().to_string_lossy();
            let FolderReport { passed, failed, skipped, .. } = folder;
            writeln!(f, "{name:28} {passed:5} passed {failed:5} failed {skipped:5} skipped")?;
            for vector in &folder.vectors {
                match &vector.outcome {
                    Outcome::Passed { .. } => {}
                    Outcome::Skipped { reason } => writeln!(f, "  {}: skipped: {reason}", vector.name)?,
                    Outcome::Failed(divergence) => writeln!(f, "  {}: {divergence}", vector.name)?,
                }
            }
        }
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        let none = || "no more rows".to_owned();
        if self.expected.is_some() || self.got.is_some() {
            write!(f, "\n    expected  {}", self.expected.clone().unwrap_or_else(none))?;
            write!(f, "\n    got       {}", self.got.clone().unwrap_or_else(none))?;
        }
        for (title, lines) in
            [("scheduler before that instant", &self.state), ("decisions before", &self.before)]
        {
            if !lines.is_empty() {
                write!(f, "\n    {title}")?;
            }
            for line in lines {
                write!(f, "\n      {line}")?;
            }
        }
        Ok(())
    }
}
