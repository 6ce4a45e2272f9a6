//! The targets, one file for each group of parsers.

pub mod api;
pub mod configuration;
pub mod dag_file;
pub mod expression;
pub mod input_schema;
pub mod json_payload;
pub mod records;
pub mod schedule;
pub mod sql;
pub mod template;
pub mod text_values;
pub mod token;
pub mod traceparent;
pub mod webhook;

use crate::Target;

/// All targets.
pub const ALL: &[Target] = &[
    Target { name: "api", run: api::target },
    Target { name: "configuration", run: configuration::target },
    Target { name: "csv", run: records::csv },
    Target { name: "dag_file", run: dag_file::target },
    Target { name: "durations", run: text_values::durations },
    Target { name: "expression", run: expression::target },
    Target { name: "input_schema", run: input_schema::target },
    Target { name: "json_lines", run: records::json_lines },
    Target { name: "json_payload", run: json_payload::target },
    Target { name: "names", run: text_values::names },
    Target { name: "retry_after", run: text_values::retry_after },
    Target { name: "schedule", run: schedule::target },
    Target { name: "sql_apply", run: sql::apply },
    Target { name: "sql_source", run: sql::source },
    Target { name: "store_address", run: text_values::store_address },
    Target { name: "subject", run: text_values::subject },
    Target { name: "template", run: template::target },
    Target { name: "token", run: token::target },
    Target { name: "traceparent", run: traceparent::target },
    Target { name: "webhook", run: webhook::target },
];
