//! Executors for jobs that are not written in Rust: [HTTP calls](http::Http) and [programs](exec::Exec).
//!
//! Each executor is created once from its settings and is registered with a worker as a handler:
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use milepost::{RetryPolicy, Worker};
//! use milepost_executors::http::{Http, HttpConfig};
//!
//! # async fn run(store: Arc<dyn milepost::Store>) -> Result<(), Box<dyn std::error::Error>> {
//! let mail = Arc::new(Http::new(&HttpConfig::to("https://mail.internal/send"))?);
//! let worker = Worker::builder(store)
//!     .handle_kind("mail", RetryPolicy::default(), move |context| {
//!         let mail = mail.clone();
//!         async move { mail.run(&context).await }
//!     })
//!     .start()
//!     .await?;
//! # Ok(())
//! # }
//! ```

pub mod exec;
mod facts;
pub mod http;
mod result;
