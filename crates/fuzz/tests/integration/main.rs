//! Tests of the fuzz targets.

mod mutations;
mod targets;
