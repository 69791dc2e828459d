//! Applications.

use vcpulab_guest::Softirq;
use vcpulab_guest::apps::AppParamKind;
use vcpulab_host::Span;
use vcpulab_spec::{AppSpec, AppValue, Spec};

use crate::file::raw::RawApp;
use crate::text::params::RawParam;
use crate::text::read::Named;
use crate::text::units::{Duration, Size};
use crate::write::phases::raw_phase;

/// A checked application as a file would state it.
pub(crate) fn raw_app(app: &AppSpec, spec: &Spec) -> RawApp {
    let mut raw = RawApp {
        kind: app.kind().to_owned().into(),
        instance: app.instances().into(),
        assumed: app.assumed().into(),
        ..RawApp::default()
    };
    match app {
        AppSpec::Phases { phases, stretch, rounds, delay, softirq, .. } => {
            raw.stretch = (*stretch).into();
            raw.start_delay = (*delay).into();
            raw.softirq = (*softirq == Softirq::All).into();
            raw.softirq_first = (*softirq == Softirq::First).into();
            // Stretches have no rounds.
            raw.r#loop = stretch.is_none().then(|| rounds.map_or(-1, i64::from)).into();
            raw.phase = phases.iter().map(|phase| raw_phase(phase).into()).collect::<Vec<_>>().into();
        }
        AppSpec::Kind { kind, values, .. } => {
            let params = kind.params.iter().zip(values).filter_map(|(param, &value)| {
                let value = match value {
                    AppValue::Absent => return None,
                    AppValue::Service(service) => RawParam::Word(spec.domains[service.domain].name.clone()),
                    AppValue::Number(number) => raw_number(number, param.kind),
                };
                Some((param.name.to_owned().into(), value.into()))
            });
            raw.params = Named(params.collect());
        }
    }
    raw
}

fn raw_number(number: i64, kind: AppParamKind) -> RawParam {
    match kind {
        AppParamKind::Duration { .. } => RawParam::Word(Duration(Span::from_ns(number)).to_string()),
        AppParamKind::Size { .. } => RawParam::Word(Size(number).to_string()),
        AppParamKind::Int { .. } | AppParamKind::Percent | AppParamKind::Service(_) => RawParam::Int(number),
        AppParamKind::Choice(words) => RawParam::Word(words[number as usize].to_owned()),
        AppParamKind::Flag => RawParam::Flag(number != 0),
    }
}
