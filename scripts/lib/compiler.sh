# Sourced by scripts that compile tests. Clippy is used as the compiler of this project's crates, so that the checked code is the code that
# runs, and nothing is compiled twice. With other settings, cargo would compile these crates again.
export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS="-Dwarnings__CLIPPY_HACKERY__"
