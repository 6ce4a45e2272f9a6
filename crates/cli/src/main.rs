//! The program `milepost`.

use std::process::ExitCode;

/// Jobs cause many small allocations that are made by one thread and freed by another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    milepost_cli::main()
}
