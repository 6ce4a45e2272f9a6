//! Support for tests: fixtures, servers, processes and faults. All functions here panic when an expectation fails.

pub mod alone;
pub mod database;
pub mod effect;
pub mod examine;
pub mod faulty;
pub mod home;
pub mod hosts;
pub mod identity_provider;
pub mod inbox;
pub mod lonely;
pub mod nats;
pub mod notes;
pub mod port;
pub mod process;
pub mod proxy;
pub mod pulse;
pub mod queries;
pub mod redis;
pub mod relay;
pub mod scene;
pub mod server;
pub mod tls;
pub mod wait;

pub use scene::Scene;
