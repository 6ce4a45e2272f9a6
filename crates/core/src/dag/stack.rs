//! Large stacks for functions that recurse as deep as a caller's values are nested.

/// The stack size in bytes: enough for 1,000 levels of a validator compiled without optimization. Only used pages take memory.
const BYTES: usize = 64 << 20;

/// Runs a function on a large stack: runtime threads have 2 MiB, and an overflow ends the process.
pub(crate) fn large<T>(run: impl FnOnce() -> T) -> T {
    stacker::grow(BYTES, run)
}
