//! Fields of tables that are parameters of schedulers and applications.

use serde::Serialize;
use toml::de::DeValue;
use vcpulab_host::Span;
use vcpulab_spec::limits::{SPANS_ABOVE_ZERO, VCPU_NUMBERS};

use crate::text::read::{At, Named, Node, Read, Reader};
use crate::text::record::record;

/// The value of a parameter, before it is known which parameter it is.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum RawParam {
    Int(i64),
    Flag(bool),
    Word(String),
    Timetable(Vec<At<RawSlot>>),
}

impl Read for RawParam {
    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        match node.get_ref() {
            DeValue::Boolean(value) => Some(RawParam::Flag(*value)),
            DeValue::String(value) => Some(RawParam::Word(value.clone().into_owned())),
            DeValue::Array(_) => Vec::read(node, reader).map(RawParam::Timetable),
            // Anything else is read as an integer, so that the error asks for one.
            _ => i64::read(node, reader).map(RawParam::Int),
        }
    }
}

/// Fields that are the scheduler's, not the file format's.
pub(crate) type RawParams = Named<RawParam>;

record! {
    /// A slot of a scheduler's timetable.
    struct RawSlot {
        /// The domain that runs.
        domain: String,
        /// The number of the vCPU, from 0.
        vcpu: u32 = 0; VCPU_NUMBERS => most,
        /// Length of the slot.
        runtime: Span; SPANS_ABOVE_ZERO,
    }
    required [domain, runtime]
}
