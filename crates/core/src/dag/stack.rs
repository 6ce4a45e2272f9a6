//! Stacks for what recurses as deep as a caller's values are nested.

/// Enough for 1,000 levels of a validator that was compiled without optimization. Only what is used takes memory.
const BYTES: usize = 64 << 20;

/// Runs a function on a large stack: threads of a runtime have 2 MiB, and an overflow ends the process.
pub(crate) fn large<T>(run: impl FnOnce() -> T) -> T {
    stacker::grow(BYTES, run)
}
