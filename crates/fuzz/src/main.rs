//! The program of `scripts/fuzz`: runs the target that `MILEPOST_FUZZ_TARGET` names, with the arguments of libFuzzer.
#![no_main]

use std::sync::OnceLock;

use milepost_fuzz::{Target, target, targets};

static TARGET: OnceLock<&Target> = OnceLock::new();

/// Returns the target of the environment.
///
/// # Panics
/// The environment names no target.
fn named() -> &'static Target {
    let name = std::env::var("MILEPOST_FUZZ_TARGET").unwrap_or_default();
    let known: Vec<_> = targets::ALL.iter().map(|target| target.name).collect();
    target(&name).unwrap_or_else(|| panic!("set MILEPOST_FUZZ_TARGET to one of: {}", known.join(" ")))
}

libfuzzer_sys::fuzz_target!(init: { TARGET.get_or_init(named); }, |input: &[u8]| {
    (TARGET.get_or_init(named).run)(input);
});
