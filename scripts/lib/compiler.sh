# Sourced by what compiles tests. Clippy is the compiler of our own crates there: what it has checked is what runs, and nothing is
# compiled twice. With other settings, cargo would compile our crates again.
export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS="-Dwarnings__CLIPPY_HACKERY__"
