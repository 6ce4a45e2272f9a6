//! Notifiers on both stores: each message is sent once, whatever happens to servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use milepost_core::alert::{
    ActiveAlert, AlertKey, AlertRule, IncidentFilter, IncidentTimes, NoticeRules, NoticeTimes, Severity,
    SilenceUntil,
};
use milepost_core::port::Store;
use milepost_notify::{Channel, ChannelConfig, Notifier, Target};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use milepost_testkit::database::{self, Database};
use milepost_testkit::wait;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::receiver::Receiver;

const EVERY: Duration = Duration::from_millis(20);
const INCIDENTS: IncidentTimes =
    IncidentTimes { clear_after: Duration::from_millis(200), keep: Duration::from_secs(3_600) };
const MESSAGES: NoticeTimes =
    NoticeTimes { lease: Duration::from_millis(500), pause: Duration::from_millis(1) };

/// A store, opened twice as by two servers.
type Stores = [Arc<dyn Store>; 2];

async fn on_sqlite(folder: &tempfile::TempDir) -> Stores {
    let open = || SqliteStore::open(folder.path().join("jobs.db"), SqliteOptions::default()).unwrap();
    let (one, other) = (open(), open());
    one.migrate().await.unwrap();
    [Arc::new(one), Arc::new(other)]
}

async fn on_postgres() -> (Database, Stores) {
    let (database, store) = Database::with_store().await;
    let other = database::open(&database.url()).await;
    (database, [Arc::new(store), Arc::new(other)])
}

/// Runs a test on both stores.
macro_rules! on_both {
    ($($test:ident)+) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                let folder = tempfile::tempdir().unwrap();
                super::$test(super::on_sqlite(&folder).await).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                let (_database, stores) = super::on_postgres().await;
                super::$test(stores).await;
            })+
        }
    };
}

on_both! {
    two_servers_send_the_beginning_and_the_end_once
    a_message_whose_sender_was_killed_is_sent_by_another_server
    a_silenced_alert_is_not_sent
    a_message_that_was_refused_is_sent_again
}

fn alert() -> ActiveAlert {
    ActiveAlert {
        key: AlertKey::new(AlertRule::QueuePaused, "mail"),
        severity: Severity::Warning,
        title: "Queue mail is paused".to_owned(),
        words: "3 jobs wait.".to_owned(),
        command: "milepost queues resume mail".to_owned(),
    }
}

/// A server with a target, which sees the alert while `active` is true.
fn server(
    store: &Arc<dyn Store>,
    receiver: &Receiver,
    active: &Arc<AtomicBool>,
    stop: &CancellationToken,
) -> JoinHandle<()> {
    let url = format!("http://127.0.0.1:{}/hook", receiver.port);
    let secrets = vec!["whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD".into()];
    let config = ChannelConfig::Webhook { url: url.as_str().into(), secrets };
    let channel = Channel::open(&config, &["127.0.0.0/8".to_owned()]).unwrap();
    let rules = NoticeRules { hold: Duration::from_millis(50), ..NoticeRules::new("oncall") };
    let active = Arc::clone(active);
    let observe = Box::new(move || -> BoxFuture<'static, _> {
        let alerts = if active.load(Ordering::SeqCst) { vec![alert()] } else { Vec::new() };
        Box::pin(async move { Ok(alerts) })
    });
    let notifier = Notifier::new(Arc::clone(store), vec![Target { rules, channel, console: None }], observe);
    tokio::spawn(notifier.timed(EVERY, INCIDENTS, MESSAGES).run(stop.clone()))
}

async fn two_servers_send_the_beginning_and_the_end_once(stores: Stores) {
    let (receiver, active, stop) =
        (Receiver::accepting().await, Arc::new(AtomicBool::new(true)), CancellationToken::new());
    let servers: Vec<_> = stores.iter().map(|store| server(store, &receiver, &active, &stop)).collect();
    receiver.until(1).await;
    active.store(false, Ordering::SeqCst);
    receiver.until(2).await;
    // Another alert comes and goes, after which nothing of the first one can be left.
    wait::until("the end is recorded", || async {
        stores[0]
            .incidents(&IncidentFilter { ended: true, limit: 10 })
            .await
            .unwrap()
            .iter()
            .all(|it| it.ended_at.is_some())
    })
    .await;
    stop.cancel();
    futures::future::join_all(servers).await;
    let documents: Vec<_> = receiver.all().iter().map(crate::receiver::Received::json).collect();
    assert_eq!(documents.len(), 2, "{documents:?}");
    assert_eq!(documents[0]["begun"][0]["title"], "Queue mail is paused");
    assert_eq!(documents[1]["ended"][0]["id"], documents[0]["begun"][0]["id"]);
    assert!(documents[1]["ended"][0]["ended_at"].is_string());
}

async fn a_message_whose_sender_was_killed_is_sent_by_another_server(stores: Stores) {
    // The first request is never answered, until its sender is killed.
    let receiver = Receiver::http(|place| (place > 0).then_some("200 OK")).await;
    let (active, stop) = (Arc::new(AtomicBool::new(true)), CancellationToken::new());
    let killed = server(&stores[0], &receiver, &active, &stop);
    receiver.until(1).await;
    killed.abort();
    assert!(killed.await.unwrap_err().is_cancelled());
    let other = server(&stores[1], &receiver, &active, &stop);
    let got = receiver.until(2).await;
    assert_eq!(got[0].header("webhook-id"), got[1].header("webhook-id"), "receivers recognize it");
    wait::until("the delivery is recorded", || async {
        stores[1].alert_targets().await.unwrap()[0].sent_at.is_some()
    })
    .await;
    stop.cancel();
    other.await.unwrap();
    assert_eq!(receiver.all().len(), 2);
}

async fn a_silenced_alert_is_not_sent(stores: Stores) {
    let (receiver, active, stop) =
        (Receiver::accepting().await, Arc::new(AtomicBool::new(true)), CancellationToken::new());
    stores[0].observe_alerts(&[alert()], &INCIDENTS).await.unwrap();
    assert!(stores[0].silence_alert(&alert().key, SilenceUntil::Over).await.unwrap());
    let server = server(&stores[1], &receiver, &active, &stop);
    let first = open(&stores).await;
    wait::until("it would have been sent", || async {
        open(&stores).await > first + Duration::from_millis(300)
    })
    .await;
    assert!(receiver.all().is_empty());
    assert!(stores[0].unsilence_alert(&alert().key).await.unwrap());
    receiver.until(1).await;
    stop.cancel();
    server.await.unwrap();
}

/// Returns when the open incident was last observed.
async fn open(stores: &Stores) -> jiff::Timestamp {
    let open = stores[0].incidents(&IncidentFilter { ended: false, limit: 1 }).await.unwrap();
    open[0].last_seen_at
}

async fn a_message_that_was_refused_is_sent_again(stores: Stores) {
    let receiver =
        Receiver::http(|place| Some(if place == 0 { "500 Internal Server Error" } else { "200 OK" })).await;
    let (active, stop) = (Arc::new(AtomicBool::new(true)), CancellationToken::new());
    let server = server(&stores[0], &receiver, &active, &stop);
    receiver.until(1).await;
    wait::until("the failure is shown", || async {
        let target = stores[1].alert_targets().await.unwrap().remove(0);
        target.failures == 1 && target.last_error.is_some_and(|why| why.contains("500 Internal Server Error"))
    })
    .await;
    assert_eq!(receiver.all().len(), 1, "it waits");
    receiver.until(2).await;
    stop.cancel();
    server.await.unwrap();
}
