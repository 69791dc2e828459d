//! Policies from outside this crate: declared while the process runs, and kept until it ends.

use std::sync::{Mutex, PoisonError};

use vcpulab_host::Scope;

use crate::param_spec::{ParamKind, ParamSpec};
use crate::policy::{Generation, Policy};
use crate::role::{Per, Role};
use crate::toolstack::Toolstack;

/// A policy in the form in which its author declares it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// Name of the policy in scenarios.
    pub name: String,
    /// Sentence on what the policy does.
    pub doc: String,
    /// Generation of the policy: a text that tells versions of its source apart.
    pub generation: String,
    /// Parameters of the policy.
    pub params: Vec<DeclaredParam>,
}

/// A parameter, an integer, as the author of a policy declares it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclaredParam {
    /// Name of the parameter, with the unit at the end where it has one.
    pub name: String,
    /// Global or per domain.
    pub scope: Scope,
    /// The unit in words, empty for a plain number.
    pub unit: String,
    /// Least value.
    pub min: i64,
    /// Greatest value.
    pub max: i64,
    /// The value of a new domain or host.
    pub default: i64,
    /// Sentence on what the parameter does.
    pub doc: String,
}

/// Declared policies, oldest first. None is ever removed: a policy is `'static` to all users.
static DECLARED: Mutex<Vec<(Declaration, &'static Policy)>> = Mutex::new(Vec::new());

/// The policy of a declaration. Equal declarations give the same policy.
pub fn declare(declaration: Declaration) -> &'static Policy {
    let mut declared = DECLARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(position) = declared.iter().position(|(known, _)| *known == declaration) {
        // The latest is the one that is meant by its name alone.
        let known = declared.remove(position);
        let policy = known.1;
        declared.push(known);
        return policy;
    }
    let policy = kept(&declaration);
    declared.push((declaration, policy));
    policy
}

/// The policy declared last under a name, and under a generation where one is named.
pub fn declared(name: &str, generation: Option<&str>) -> Option<&'static Policy> {
    let declared = DECLARED.lock().unwrap_or_else(PoisonError::into_inner);
    let meant = |known: &Declaration| known.name == name && generation.is_none_or(|g| known.generation == g);
    declared.iter().rev().find(|(known, _)| meant(known)).map(|&(_, policy)| policy)
}

fn kept(declaration: &Declaration) -> &'static Policy {
    let text = |text: &str| -> &'static str { Box::leak(text.into()) };
    let param = |param: &DeclaredParam| ParamSpec {
        name: text(&param.name),
        scope: param.scope,
        // This is what its author is told that it means.
        role: if (param.scope, param.name.as_str()) == (Scope::Domain, "weight") {
            Role::Weight(Per::Domain)
        } else {
            Role::Plain
        },
        unit: text(&param.unit),
        kind: ParamKind::int(param.min, param.max),
        default: param.default,
        doc: text(&param.doc),
    };
    let params: Vec<ParamSpec> = declaration.params.iter().map(param).collect();
    let generation = Generation {
        name: text(&declaration.generation),
        since: &[],
        params: params.leak(),
        work_conserving: false, // It does not say so.
        hard_affinity: true,    // The host refuses what breaks it.
        toolstack: Toolstack::NONE,
    };
    Box::leak(Box::new(Policy {
        name: text(&declaration.name),
        doc: text(&declaration.doc),
        leaves_in_place: false,
        decision_cost: None,
        generations: vec![generation].leak(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declaration(generation: &str) -> Declaration {
        let weight = DeclaredParam {
            name: "weight".into(),
            scope: Scope::Domain,
            unit: String::new(),
            min: 1,
            max: 9,
            default: 5,
            doc: "Share.".into(),
        };
        let (name, doc) = ("s.py:S".into(), "Strides.".into());
        Declaration { name, doc, generation: generation.into(), params: vec![weight] }
    }

    #[test]
    fn the_same_declaration_is_the_same_policy_and_the_last_is_meant_by_name() {
        let (old, new) = (declare(declaration("1")), declare(declaration("2")));
        assert!(std::ptr::eq(declared("s.py:S", None).unwrap(), new));
        assert!(std::ptr::eq(declared("s.py:S", Some("1")).unwrap(), old));
        assert!(std::ptr::eq(declare(declaration("1")), old));
        assert!(std::ptr::eq(declared("s.py:S", None).unwrap(), old));
        assert_eq!(old.default_generation().params[0].kind.allowed(), "an integer from 1 to 9");
        assert!(declared("t.py:S", None).is_none());
    }
}
