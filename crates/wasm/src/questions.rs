//! Questions that a hook on the other side asks while it runs: the functions of [`lent`] by number, so that most
//! answers are numbers, without text.

use std::cell::RefCell;

use serde_json::{Value, json};
use vcpulab_host::CpuMask;
use vcpulab_run::own::{Refused, lent};

/// Codes of answers that are no numbers; the last code means: the answer is in [`text`].
const NOTHING: i64 = i64::MIN;
const FALSE: i64 = i64::MIN + 1;
const TRUE: i64 = i64::MIN + 2;
const IN_WORDS: i64 = i64::MIN + 3;

thread_local! {
    /// The text of the last such answer: JSON, `{"error": KIND, "text": …}` for a refusal.
    static WORDS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// An answer to a question: a number, or a value that [`text`] points to.
enum Met {
    Number(i64),
    Words(Value),
}

impl From<()> for Met {
    fn from((): ()) -> Self {
        Met::Number(NOTHING)
    }
}
impl From<bool> for Met {
    fn from(met: bool) -> Self {
        Met::Number(if met { TRUE } else { FALSE })
    }
}
impl From<u32> for Met {
    fn from(met: u32) -> Self {
        Met::Number(met.into())
    }
}
impl From<i64> for Met {
    fn from(met: i64) -> Self {
        Met::Number(met)
    }
}
impl From<Vec<u32>> for Met {
    fn from(met: Vec<u32>) -> Self {
        Met::Words(met.into())
    }
}
impl From<(i64, i64)> for Met {
    fn from(met: (i64, i64)) -> Self {
        Met::Words(json!(met))
    }
}
impl From<CpuMask> for Met {
    fn from(met: CpuMask) -> Self {
        Met::Words(met.iter().map(|p| p.0).collect())
    }
}
impl<T: Into<Met>> From<Option<T>> for Met {
    fn from(met: Option<T>) -> Self {
        met.map_or(Met::Number(NOTHING), Into::into)
    }
}

/// An id from the other side, which only passes numbers in range.
fn id(number: i64) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

type Question = fn(i64, i64) -> Result<Met, Refused>;

macro_rules! questions {
    ($($name:ident($arguments:literal $(, $read:expr)*);)*) => {
        const QUESTIONS: &[(&str, &str, Question)] = &[$((stringify!($name), $arguments, questions!(one $name $($read),*))),*];
    };
    (one $name:ident) => { |_, _| lent::$name().map(Met::from) };
    (one $name:ident $one:expr) => { |a, _| lent::$name($one(a)).map(Met::from) };
    (one $name:ident $one:expr, $two:expr) => { |a, b| lent::$name($one(a), $two(b)).map(Met::from) };
}

questions! {
    now("");
    pcpus("");
    guest_vcpus("");
    executing("");
    socket("p", id);
    core("p", id);
    node("p", id);
    current("p", id);
    idle("p", id);
    is_idle("v", id);
    is_current("v", id);
    processor("v", id);
    runnable("v", id);
    affinity("v", id);
    soft_affinity("v", id);
    dom("v", id);
    vcpus_of("d", id);
    domain_number("d", id);
    name("v", id);
    switched_at("v", id);
    running_ns("v", id);
    raise_reschedule("p", id);
    set_processor("v, p", id, id);
    start_migration("v", id);
    park("v", id);
    unpark("v", id);
    is_parked("v", id);
    new_timer("p, token=0", id, id);
    set_timer("timer, at", id, i64::from);
    stop_timer("timer", id);
    timer_expiry("timer", id);
}

/// The questions in the order of their numbers, each with its arguments.
pub fn names() -> Value {
    QUESTIONS.iter().map(|(name, arguments, _)| json!([name, arguments])).collect()
}

/// The name of the exception that Python raises for a refusal.
pub fn kind(refused: &Refused) -> &'static str {
    match refused {
        Refused::NotLent => "RuntimeError",
        Refused::Unknown(_) => "IndexError",
        Refused::Impossible(_) => "ValueError",
    }
}

/// Answers a question about the host whose hook lasts.
pub extern "C" fn ask(question: u32, a: i64, b: i64) -> i64 {
    let met = match QUESTIONS.get(question as usize) {
        Some((_, _, question)) => question(a, b),
        None => Err(Refused::Unknown(format!("there is no question {question}"))),
    };
    let words = match met {
        Ok(Met::Number(number)) => return number,
        Ok(Met::Words(words)) => words,
        Err(refused) => json!({ "error": kind(&refused), "text": refused.to_string() }),
    };
    WORDS.with_borrow_mut(|text| *text = words.to_string());
    IN_WORDS
}

/// The place of the last answer's text: its address, and in the upper half its length.
pub extern "C" fn text() -> u64 {
    WORDS.with_borrow(|text| text.as_ptr() as usize as u64 | (text.len() as u64) << 32)
}
