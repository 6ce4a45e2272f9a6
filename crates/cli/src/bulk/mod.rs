//! `milepost bulk`.
pub(crate) mod assemble;
