//! The administrator's actions.

use vcpulab_spec::{ActionSpec, Change, LifeChange, Spec};

use crate::file::raw::{
    RawAction, RawAdjust, RawAdjustGlobal, RawAffinity, RawLife, RawMovePool, RawOnline, RawPause,
};
use crate::text::read::Field;
use crate::text::units::{CpuList, Duration};
use crate::write::host::pool_name;
use crate::write::params::raw_params;

/// `pool` is the one that its domain is in then.
pub(crate) fn raw_action(action: &ActionSpec, pool: usize, spec: &Spec) -> RawAction {
    let at = || Field::from(Duration::from(action.at));
    let domain = |index: &usize| Field::from(spec.domains[*index].name.clone());
    match &action.change {
        Change::Adjust(index, params) => {
            let params = raw_params(params, &spec.pools[pool], spec);
            RawAction::Adjust(RawAdjust { at: at(), domain: domain(index), params })
        }
        Change::AdjustGlobal(pool, params) => RawAction::AdjustGlobal(RawAdjustGlobal {
            at: at(),
            pool: pool_name(*pool, spec),
            params: raw_params(params, &spec.pools[*pool], spec),
        }),
        Change::Pause(index) => RawAction::Pause(RawPause { at: at(), domain: domain(index) }),
        Change::Unpause(index) => RawAction::Unpause(RawPause { at: at(), domain: domain(index) }),
        Change::Affinity(index, vcpu, mask) => RawAction::Affinity(RawAffinity {
            at: at(),
            domain: domain(index),
            vcpu: vcpu.map(i64::from).into(),
            affinity: CpuList::from(mask).into(),
        }),
        Change::MovePool(index, pool) => RawAction::MovePool(RawMovePool {
            at: at(),
            domain: domain(index),
            pool: spec.pools[*pool].name.clone().into(),
        }),
        Change::Life(index, change) => {
            let raw = match change {
                LifeChange::Create => RawAction::Create,
                LifeChange::Shutdown => RawAction::Shutdown,
                LifeChange::Reboot => RawAction::Reboot,
                LifeChange::Crash => RawAction::Crash,
                LifeChange::Destroy => RawAction::Destroy,
                LifeChange::Save => RawAction::Save,
                LifeChange::Restore => RawAction::Restore,
            };
            raw(RawLife { at: at(), domain: domain(index) })
        }
        Change::Online(index, vcpu, online) => {
            let raw = if *online { RawAction::Online } else { RawAction::Offline };
            raw(RawOnline { at: at(), domain: domain(index), vcpu: i64::from(*vcpu).into() })
        }
    }
}
