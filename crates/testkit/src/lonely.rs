//! A PostgreSQL server whose commits wait for a standby that it does not have.

use std::sync::Arc;

use sqlx::{Connection, Executor, PgConnection};

use crate::server::Server;
use crate::{Scene, database, wait};

/// A server on which commits wait for a standby that never comes.
pub struct Lonely {
    /// The server.
    pub server: Server,
    /// A connection to it.
    pub admin: PgConnection,
    /// A store on it.
    pub scene: Scene,
}

impl Lonely {
    /// Starts a server. Its commits do not wait yet.
    pub async fn create() -> Self {
        let server = Server::create().await;
        let scene = Scene::on(Arc::new(database::open(&server.url()).await)).await;
        let admin = PgConnection::connect(&server.url()).await.unwrap();
        Self { server, admin, scene }
    }

    /// Makes commits wait for the standby with this name, or, if it is empty, for none.
    pub async fn wait_for_standby(&mut self, name: &str) {
        let set = format!("alter system set synchronous_standby_names = '{name}'");
        self.admin.execute(sqlx::AssertSqlSafe(set)).await.unwrap();
        self.admin.execute("select pg_reload_conf()").await.unwrap();
        let url = self.server.url();
        wait::until("the setting is active", || async {
            let mut fresh = PgConnection::connect(&url).await.unwrap();
            let shown: String =
                sqlx::query_scalar("show synchronous_standby_names").fetch_one(&mut fresh).await.unwrap();
            shown == name
        })
        .await;
        // The checkpointer makes commits wait, a moment after connections see the setting.
        while !name.is_empty() {
            let mut probe = PgConnection::connect(&url).await.unwrap();
            let write =
                async move { probe.execute("select pg_logical_emit_message(true, 'probe', '')").await };
            let commit = tokio::spawn(write);
            wait::until("a commit waits or ends", || async {
                commit.is_finished() || self.waiting().await > 0
            })
            .await;
            if !commit.is_finished() {
                self.end_waiting().await;
                commit.await.unwrap().expect_err("the connection was terminated");
                return;
            }
        }
    }

    /// The number of connections whose commit waits for a standby.
    async fn waiting(&self) -> i64 {
        let mut fresh = PgConnection::connect(&self.server.url()).await.unwrap();
        let count = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'";
        sqlx::query_scalar(count).fetch_one(&mut fresh).await.unwrap()
    }

    /// Terminates the connections whose commit waits: from then on, their changes are visible.
    async fn end_waiting(&mut self) {
        let end = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'";
        self.admin.execute(end).await.unwrap();
    }

    /// Makes a call whose answer is lost while its commit waits, and then another call that depends on that commit. Asserts that the second call is
    /// answered only after a standby has the commit.
    pub async fn told_when_safe<T: Send + 'static, E: std::fmt::Debug + Send + 'static>(
        &mut self,
        call: impl Future<Output = Result<(), E>> + Send + 'static,
        again: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> T {
        self.wait_for_standby("nobody").await;
        let lost = tokio::spawn(call);
        wait::until("the commit waits", || async { self.waiting().await > 0 }).await;
        self.end_waiting().await;
        lost.await.unwrap().expect_err("the call succeeded although its connection was terminated");
        let again = tokio::spawn(again);
        wait::until("the repeated call waits", || async { again.is_finished() || self.waiting().await > 0 })
            .await;
        assert!(!again.is_finished(), "the call was answered from a commit that no standby has");
        self.wait_for_standby("").await;
        again.await.unwrap().expect("answered")
    }
}
