//! Comparisons of whole runs, and their wording.

use proptest::prelude::*;
use vcpulab_judge::{
    Better, Comparison, Kind, Lengths, Measured, Metric, NoValue, Verdict, bonferroni, compare, holm, paired,
    words,
};

const SAME_LENGTH: Lengths = Lengths { before: 1.0, after: 1.0 };
const BASE: [f64; 6] = [100.0, 104.0, 96.0, 101.0, 99.0, 100.0];

fn metric(name: &str, better: Option<Better>) -> Metric {
    Metric {
        name: name.to_owned(),
        kind: Kind::App,
        domain: name.split('.').next().unwrap_or_default().to_owned(),
        unit: "ms".to_owned(),
        better,
        whole: None,
        undefined_is: "it never ran".to_owned(),
        undefined_is_worst: false,
        accumulates: false,
        in_question: false,
        begun: None,
    }
}

fn measured(metric: Metric, before: &[f64], after: &[f64]) -> Measured {
    let some = |values: &[f64]| values.iter().copied().map(Some).collect();
    Measured { metric, before: some(before), after: some(after) }
}

/// The values of `BASE`, each times a factor that differs by a few percent between replications.
fn times(factor: f64) -> Vec<f64> {
    let jitter = [0.01, -0.01, 0.02, -0.02, 0.015, -0.015];
    BASE.iter().zip(jitter).map(|(base, jitter)| base * (factor + jitter)).collect()
}

fn of(metric: Metric, factor: f64) -> Comparison {
    compare(vec![measured(metric, &BASE, &times(factor))], SAME_LENGTH, 1).remove(0).unwrap()
}

fn lines(comparisons: &[Comparison]) -> Vec<String> {
    words::lines(&comparisons.iter().collect::<Vec<_>>())
}

#[test]
fn verdicts_depend_on_the_good_direction() {
    let verdicts = |factor| {
        [Some(Better::Higher), Some(Better::Lower), None]
            .map(|better| of(metric("a.b", better), factor).verdict)
    };
    assert_eq!(verdicts(1.5), [Verdict::Improves, Verdict::Regresses, Verdict::Higher]);
    assert_eq!(verdicts(0.5), [Verdict::Regresses, Verdict::Improves, Verdict::Lower]);
    assert_eq!(verdicts(1.0), [Verdict::Unclear; 3]);
    let same = compare(vec![measured(metric("a.b", None), &BASE, &BASE)], SAME_LENGTH, 1).remove(0).unwrap();
    assert_eq!((same.verdict, same.p), (Verdict::Same, Some(1.0)));
}

#[test]
fn words_tell_first_what_matters() {
    let found = [
        of(metric("web.wait", Some(Better::Lower)), 1.5),
        of(metric("db.throughput", Some(Better::Higher)), 2.5),
        of(metric("db.wait", Some(Better::Lower)), 1.0),
        of(metric("db.gotten", None), 3.0),
    ];
    assert_eq!(
        lines(&found),
        [
            "web regresses: web.wait +50.0 %",
            "db improves: db.throughput +150 %",
            "no significant difference: 1 metric (more replications may show one)",
        ]
    );
    let words = found.iter().map(words::verdict).collect::<Vec<_>>();
    assert_eq!(words, ["regresses", "improves", "no significant difference", "higher"]);
    assert_eq!(words::change(&of(metric("a.b", None), 30.0)), "a.b 100 → 3000 ms");
    assert_eq!(lines(&[]), ["nothing improves or regresses significantly"]);
}

#[test]
fn a_large_harm_that_is_not_certain_may_be_one() {
    let wild = [30.0, 310.0, 40.0, 320.0, 35.0, 315.0];
    let doubtful = |better| {
        compare(vec![measured(metric("a.b", better), &BASE, &wild)], SAME_LENGTH, 1).remove(0).unwrap()
    };
    let harm = doubtful(Some(Better::Lower));
    assert!(harm.may_regress() && !harm.may_improve() && harm.is_large());
    assert!(doubtful(Some(Better::Higher)).may_improve() && !doubtful(None).may_regress());
    assert!(lines(&[harm])[1].starts_with("may regress: a.b 100 → 175 ± 1"));
}

#[test]
fn small_changes_are_counted() {
    let steady = |factor: f64| BASE.map(|base| base * factor);
    let of = |metric, factor| {
        compare(vec![measured(metric, &BASE, &steady(factor))], SAME_LENGTH, 1).remove(0).unwrap()
    };
    let small = of(metric("a.b", Some(Better::Lower)), 1.005);
    assert_eq!(small.verdict, Verdict::Regresses);
    assert!(small.is_negligible() && !small.matters());
    assert_eq!(lines(&[small]), ["of no consequence: 1 metric (less than 1 %)"]);
    assert!(of(metric("a.b", Some(Better::Lower)), 1.02).matters());
    let of_work = Metric { begun: Some(1000.0), ..metric("a.failed", Some(Better::Lower)) };
    assert!(of(of_work.clone(), 1.05).is_negligible(), "5 failures of 1000");
    assert!(of(of_work, 1.2).matters());
    let of_whole = Metric { whole: Some(100_000.0), ..metric("a.b", Some(Better::Lower)) };
    assert!(of(of_whole, 1.5).is_negligible(), "50 of 100000");
}

#[test]
fn having_no_value_is_worse_than_any() {
    let worst = Metric { undefined_is_worst: true, ..metric("a.b", Some(Better::Lower)) };
    let some: Vec<Option<f64>> = BASE.map(Some).to_vec();
    let most_gone = vec![None, None, None, None, Some(1.0), None];
    let compared = |before: &[Option<f64>], after: &[Option<f64>]| {
        let measured = Measured { metric: worst.clone(), before: before.to_vec(), after: after.to_vec() };
        compare(vec![measured], SAME_LENGTH, 1).remove(0)
    };
    let lost = compared(&some, &most_gone).unwrap();
    assert_eq!((lost.verdict, lost.after, lost.difference), (Verdict::Regresses, None, None));
    assert_eq!(lost.no_value, Some(NoValue::After("it never ran, in 5 of 6 replications".to_owned())));
    assert_eq!(lines(&[lost])[1], "undefined: it never ran, in 5 of 6 replications");
    assert_eq!(compared(&[None; 6], &some).unwrap().verdict, Verdict::Improves);
    assert_eq!(compared(&[None; 6], &[None; 6]), None);
}

#[test]
fn runs_of_different_lengths_are_compared_by_rates() {
    let counted = Metric { accumulates: true, begun: Some(400.0), ..metric("a.failed", Some(Better::Lower)) };
    let twice: Vec<f64> = times(2.0);
    let found = compare(vec![measured(counted, &BASE, &twice)], Lengths { before: 2.0, after: 4.0 }, 1);
    let found = found[0].as_ref().unwrap();
    assert_eq!(
        (found.verdict, found.metric.begun, &*found.metric.unit),
        (Verdict::Unclear, Some(200.0), "1/s")
    );
    assert_eq!(words::unit(found), "1/s of 200");
}

proptest! {
    #[test]
    fn the_question_is_not_weakened_by_other_metrics(
        after in prop::collection::vec(0.0..200.0f64, 6), others in 0usize..50, looks in 1u32..8,
    ) {
        let question = Metric { in_question: true, ..metric("a.b", Some(Better::Lower)) };
        let mut all = vec![measured(question, &BASE, &after)];
        all.extend((0..others).map(|_| measured(metric("c.d", Some(Better::Lower)), &BASE, &times(1.01))));
        let found = compare(all, SAME_LENGTH, looks);
        let p = paired(&after, &BASE).unwrap().p.unwrap();
        prop_assert_eq!(found[0].as_ref().unwrap().p, Some(bonferroni(p, looks)));
        if let Some(Some(other)) = found.get(1) {
            prop_assert!(other.p.unwrap() >= paired(&times(1.01), &BASE).unwrap().p.unwrap());
        }
    }

    #[test]
    fn the_opposite_change_has_the_opposite_verdict(factor in 0.3..3.0f64) {
        let there = of(metric("a.b", Some(Better::Lower)), factor);
        let back = compare(vec![measured(there.metric.clone(), &times(factor), &BASE)], SAME_LENGTH, 1);
        let opposite = match there.verdict {
            Verdict::Improves => Verdict::Regresses,
            Verdict::Regresses => Verdict::Improves,
            other => other,
        };
        prop_assert_eq!(back[0].as_ref().unwrap().verdict, opposite);
    }

    #[test]
    fn corrected_ps_keep_their_order_and_only_grow(ps in prop::collection::vec(0.0..1.0f64, 0..20)) {
        let corrected = holm(&ps);
        for (i, p) in ps.iter().enumerate() {
            prop_assert!(corrected[i] >= *p && corrected[i] <= bonferroni(*p, ps.len() as u32));
            prop_assert!(ps.iter().zip(&corrected).all(|(q, other)| p < q || *other <= corrected[i]));
        }
    }
}
