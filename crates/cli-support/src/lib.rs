//! What the commands, the benchmarks and the demo share: opening the store of an address, output, tables, and parsers of arguments.

pub mod log_format;
pub mod operations;
pub mod operator;
pub mod output;
pub mod parsers;
pub mod passwords;
pub mod process_secrets;
pub mod store;
pub mod table;
