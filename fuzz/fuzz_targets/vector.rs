//! Any bytes as the host file of a conformance vector: read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = vcpulab_conformance::read_vector(bytes);
});
