//! The program `milepost`.

use std::process::ExitCode;

/// Runs are many small things that one thread makes and another lets go of.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    milepost_cli::main()
}
