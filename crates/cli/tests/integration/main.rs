//! Tests of the command line as users run it.
//!
//! The crate has one test binary: each file here is a module that is declared below.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation panics")]

mod alerts;
mod audit;
mod batch;
mod bench;
mod browser;
mod bulk;
mod changes;
mod clients;
mod config;
mod demo;
mod doctor;
mod enqueue;
mod events;
mod generated;
mod inbox;
mod limits;
mod look;
mod mcp;
mod openapi;
mod operate;
mod prune;
mod redis;
mod relay;
mod relaying;
mod relocation;
mod retention;
mod schedules;
mod secrecy;
mod selection;
mod serve;
mod settlement;
mod status;
mod streamed;
mod support;
mod tls;
mod tokens;
mod traces;
mod tutorials;
mod watched;
mod work;
mod work_log;
