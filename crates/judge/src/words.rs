//! Comparisons in words.

use crate::comparison::{Comparison, NoValue, SMALL, Verdict};
use crate::interval::Interval;
use crate::numbers::{number, signed};

/// Most metrics of a domain that are named, and most that may regress.
pub const NAMED_MAX: usize = 6;
/// A change of more %, is shown by its values.
const PERCENT_MAX: f64 = 1000.0;
/// The text for a metric without a value.
pub const UNDEFINED: &str = "undefined";

/// The domains that regress and that improve, a line for each with its metrics; then what may regress, what is negligible, what is not
/// sure, and why metrics have no value.
pub fn lines(comparisons: &[&Comparison]) -> Vec<String> {
    let mut ranked = comparisons.to_vec();
    ranked.sort_by(|a, b| a.by_rank(b));
    let mut lines = lines_by_domain(&ranked);
    let count =
        |matching: fn(&Comparison) -> bool| ranked.iter().filter(|comparison| matching(comparison)).count();
    let negligible = count(Comparison::is_negligible);
    if lines.is_empty() && negligible == 0 {
        lines.push("nothing improves or regresses significantly".to_owned());
    }
    let uncertain: Vec<&Comparison> =
        ranked.iter().copied().filter(|comparison| comparison.may_regress()).collect();
    lines.extend(
        uncertain.iter().take(NAMED_MAX).map(|comparison| format!("may regress: {}", in_doubt(comparison))),
    );
    if uncertain.len() > NAMED_MAX {
        let more = metrics(uncertain.len() - NAMED_MAX);
        lines.push(format!("may regress, too: {more} (more replications tell)"));
    }
    if negligible > 0 {
        lines.push(format!("of no consequence: {} (less than {SMALL} %)", metrics(negligible)));
    }
    let unclear =
        count(|comparison| comparison.metric.better.is_some() && comparison.verdict == Verdict::Unclear)
            - uncertain.len();
    if unclear > 0 {
        lines.push(format!(
            "no significant difference: {} (more replications may show one)",
            metrics(unclear)
        ));
    }
    for reason in ranked.iter().filter_map(|comparison| comparison.no_value.as_ref()).map(NoValue::reason) {
        let line = format!("{UNDEFINED}: {reason}");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// A line for each domain that regresses, and for each that improves; the nearest to owners first, of those regressions.
fn lines_by_domain(ranked: &[&Comparison]) -> Vec<String> {
    let mut sides: Vec<(Verdict, &str, Vec<&Comparison>)> = Vec::new();
    for verdict in [Verdict::Regresses, Verdict::Improves] {
        for comparison in
            ranked.iter().filter(|comparison| comparison.verdict == verdict && comparison.matters())
        {
            let owner = comparison.metric.owner();
            match sides.iter_mut().find(|(side, domain, _)| (*side, *domain) == (verdict, owner)) {
                Some((.., changes)) => changes.push(comparison),
                None => sides.push((verdict, owner, vec![comparison])),
            }
        }
    }
    sides.sort_by_key(|(verdict, _, changes)| (changes[0].metric.kind, *verdict == Verdict::Improves));
    let line = |(verdict, domain, changes): (Verdict, &str, Vec<&Comparison>)| {
        let named: Vec<String> =
            changes.iter().take(NAMED_MAX).map(|comparison| change(comparison)).collect();
        let more = match changes.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(", and {} more", metrics(more)),
        };
        format!("{domain} {}: {}{more}", verdict.word(), named.join(", "))
    };
    sides.into_iter().map(line).collect()
}

/// The verdict as it is shown.
pub fn verdict(comparison: &Comparison) -> &'static str {
    if comparison.may_regress() { "may regress" } else { shown(comparison.verdict) }
}

/// A verdict as it is shown, without regard to harm that is not certain.
pub fn shown(verdict: Verdict) -> &'static str {
    if verdict == Verdict::Unclear { "no significant difference" } else { verdict.word() }
}

/// The change of a metric.
pub fn change(comparison: &Comparison) -> String {
    let Comparison { metric, before, after, .. } = comparison;
    match comparison.percent() {
        Some(percent) if before.is_some() && after.is_some() && percent.abs() <= PERCENT_MAX => {
            format!("{} {} %", metric.name, signed(number(percent)))
        }
        _ => format!("{} {} → {} {}", metric.name, mean(*before), mean(*after), unit(comparison)),
    }
}

/// The values of a metric that may have changed.
pub fn in_doubt(comparison: &Comparison) -> String {
    let Comparison { metric, before, after, .. } = comparison;
    let after = after.map_or(UNDEFINED.to_owned(), |after| after.to_string());
    format!("{} {} → {after} {}", metric.name, mean(*before), unit(comparison))
}

/// The unit of a metric; of failures also the units of work that were begun before, per replication.
pub fn unit(comparison: &Comparison) -> String {
    let unit = &comparison.metric.unit;
    match comparison.metric.begun {
        Some(begun) if begun != 0.0 => format!("{unit} of {}", number(begun)),
        _ => unit.clone(),
    }
}

/// A p value with three decimals.
pub fn p(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

/// The difference in % with its sign, as text; a dash if there is none.
pub fn percent(comparison: &Comparison) -> String {
    comparison.percent().map_or("–".to_owned(), |percent| signed(number(percent)))
}

/// The interval of the difference with its sign, as text; a dash if there is none.
pub fn difference(comparison: &Comparison) -> String {
    comparison.difference.map_or("–".to_owned(), |difference| signed(difference.to_string()))
}

fn mean(side: Option<Interval>) -> String {
    side.map_or(UNDEFINED.to_owned(), |side| number(side.mean))
}

fn metrics(count: usize) -> String {
    format!("{count} metric{}", if count == 1 { "" } else { "s" })
}
