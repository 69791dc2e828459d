//! The administrator's actions.

use vcpulab_host::{DomId, PoolId};
use vcpulab_spec::{ActionSpec, Affinity, Change, LifeChange, Spec};

use crate::file::raw::{
    RawAction, RawAdjust, RawAdjustGlobal, RawAffinity, RawDomainAction, RawMovePool, RawOnline,
};
use crate::text::read::Field;
use crate::text::units::CpuList;
use crate::write::host::pool_name;
use crate::write::params::raw_params;

/// `pool` is the one that its domain is in then.
pub(crate) fn raw_action(action: &ActionSpec, pool: PoolId, spec: &Spec) -> RawAction {
    let at = || Field::from(action.at);
    let domain = |id: &DomId| Field::from(spec.domains[*id].name.clone());
    match &action.change {
        Change::Adjust(id, params) => {
            let params = raw_params(params, &spec.pools[pool], spec);
            RawAction::Adjust(RawAdjust { at: at(), domain: domain(id), params })
        }
        Change::AdjustGlobal(pool, params) => RawAction::AdjustGlobal(RawAdjustGlobal {
            at: at(),
            pool: pool_name(*pool, spec).into(),
            params: raw_params(params, &spec.pools[*pool], spec),
        }),
        Change::Pause(id) => RawAction::Pause(RawDomainAction { at: at(), domain: domain(id) }),
        Change::Unpause(id) => RawAction::Unpause(RawDomainAction { at: at(), domain: domain(id) }),
        Change::Affinity(id, vcpu, affinity) => {
            let (hard, soft) = match affinity {
                Affinity::Hard(hard) => (Some(hard), None),
                Affinity::Soft(soft) => (None, Some(soft)),
                Affinity::Both(hard, soft) => (Some(hard), Some(soft)),
            };
            RawAction::Affinity(RawAffinity {
                at: at(),
                domain: domain(id),
                vcpu: (*vcpu).into(),
                affinity: hard.map(CpuList::from).into(),
                soft_affinity: soft.map(CpuList::from).into(),
            })
        }
        Change::MovePool(id, pool) => RawAction::MovePool(RawMovePool {
            at: at(),
            domain: domain(id),
            pool: pool_name(*pool, spec).into(),
        }),
        Change::Life(id, change) => {
            let raw = match change {
                LifeChange::Create => RawAction::Create,
                LifeChange::Shutdown => RawAction::Shutdown,
                LifeChange::Reboot => RawAction::Reboot,
                LifeChange::Crash => RawAction::Crash,
                LifeChange::Destroy => RawAction::Destroy,
                LifeChange::Save => RawAction::Save,
                LifeChange::Restore => RawAction::Restore,
            };
            raw(RawDomainAction { at: at(), domain: domain(id) })
        }
        Change::Online(id, vcpu, online) => {
            let raw = if *online { RawAction::Online } else { RawAction::Offline };
            raw(RawOnline { at: at(), domain: domain(id), vcpu: (*vcpu).into() })
        }
    }
}
