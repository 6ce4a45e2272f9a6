//! Counter of visited tasks and edges, so that tests can check for linear time without measuring time.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts a visit of one task and this many of its edges.
#[inline]
pub(super) fn look(edges: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1 + edges);
    #[cfg(not(test))]
    let _ = edges;
}

/// Returns the result of `work` and the number of steps it took.
#[cfg(test)]
pub(super) fn steps_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = STEPS.get();
    let done = work();
    (done, STEPS.get() - before)
}
