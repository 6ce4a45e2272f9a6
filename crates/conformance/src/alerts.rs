//! Incidents of alerts, the messages about them, and silences.

use std::time::Duration;

use milepost_core::alert::{
    ActiveAlert, AlertKey, AlertRule, Incident, IncidentFilter, IncidentTimes, NoticeClaim, NoticeOutcome,
    NoticeRules, NoticeTimes, Severity, SilenceUntil,
};
use milepost_core::audit::Actor;
use milepost_testkit::scene::Scene;
use milepost_testkit::wait;

/// Alerts that are not observed end with the next observation.
const ENDING: IncidentTimes = IncidentTimes { clear_after: Duration::ZERO, keep: HOUR };
/// Alerts stay open.
const LASTING: IncidentTimes = IncidentTimes { clear_after: HOUR, keep: HOUR };
const HOUR: Duration = Duration::from_secs(3_600);
/// Messages follow each other without a pause.
const AT_ONCE: NoticeTimes = NoticeTimes { lease: HOUR, pause: Duration::ZERO };

fn alert(queue: &str) -> ActiveAlert {
    ActiveAlert {
        key: AlertKey::new(AlertRule::QueuePaused, queue),
        severity: Severity::Warning,
        title: format!("Queue {queue} is paused"),
        words: "3 jobs wait.".to_owned(),
        command: format!("milepost queues resume {queue}"),
    }
}

/// The rules of a target that is notified of all alerts immediately.
fn rules(target: &str) -> NoticeRules {
    NoticeRules { hold: Duration::ZERO, repeat_after: Duration::ZERO, ..NoticeRules::new(target) }
}

async fn observe(scene: &Scene, queues: &[&str]) {
    let alerts: Vec<_> = queues.iter().map(|queue| alert(queue)).collect();
    scene.store.observe_alerts(&alerts, &LASTING).await.unwrap();
}

/// Ends all incidents. A moment passes first, because an incident ends that was not observed since an earlier time.
async fn end_all(scene: &Scene) {
    wait::until("all incidents end", || async {
        scene.store.observe_alerts(&[], &ENDING).await.unwrap();
        incidents(scene, false).await.is_empty()
    })
    .await;
}

async fn incidents(scene: &Scene, ended: bool) -> Vec<Incident> {
    scene.store.incidents(&IncidentFilter { ended, limit: 100 }).await.unwrap()
}

async fn claim(scene: &Scene, rules: &NoticeRules) -> Option<NoticeClaim> {
    scene.store.claim_notices(rules, &AT_ONCE).await.unwrap()
}

async fn deliver(scene: &Scene, claim: &NoticeClaim) {
    assert!(scene.store.end_notices(claim, &NoticeOutcome::Delivered).await.unwrap());
}

fn subjects(incidents: &[Incident]) -> Vec<&str> {
    incidents.iter().map(|incident| incident.subject.as_str()).collect()
}

pub async fn an_alert_is_one_incident_from_its_first_to_its_last_observation(scene: Scene) {
    observe(&scene, &["mail", "mail"]).await;
    let first = incidents(&scene, false).await.remove(0);
    assert_eq!((first.key(), first.severity), (alert("mail").key, Severity::Warning));
    assert_eq!((first.title.as_str(), first.ended_at), ("Queue mail is paused", None));
    wait::until("the incident is renewed", || async {
        let worse = ActiveAlert { severity: Severity::Error, ..alert("mail") };
        scene.store.observe_alerts(&[worse], &LASTING).await.unwrap();
        incidents(&scene, false).await[0].last_seen_at > first.last_seen_at
    })
    .await;
    let [renewed] = &incidents(&scene, false).await[..] else { panic!("one incident") };
    assert_eq!((renewed.id, renewed.first_seen_at), (first.id, first.first_seen_at));
    assert_eq!(renewed.severity, Severity::Error);
    end_all(&scene).await;
    observe(&scene, &["mail"]).await;
    let [again, ended] = &incidents(&scene, true).await[..] else { panic!("two incidents") };
    assert!(again.id != first.id && again.ended_at.is_none());
    assert!(ended.id == first.id && ended.ended_at.is_some());
}

pub async fn of_many_servers_one_claims_a_message(scene: Scene) {
    observe(&scene, &["mail", "tax"]).await;
    let rules = rules("oncall");
    let claims = futures::future::join_all((0..8).map(|_| claim(&scene, &rules))).await;
    let claims: Vec<_> = claims.into_iter().flatten().collect();
    let [claim_of_one] = &claims[..] else { panic!("{claims:?}") };
    assert_eq!(subjects(&claim_of_one.notices.begun), ["mail", "tax"]);
    deliver(&scene, claim_of_one).await;
    assert_eq!(claim(&scene, &rules).await, None, "it was notified already");
    end_all(&scene).await;
    let over = claim(&scene, &rules).await.expect("the end is due");
    assert_eq!((over.notices.begun.len(), over.notices.ended.len()), (0, 2));
    deliver(&scene, &over).await;
    assert_eq!(claim(&scene, &rules).await, None, "once");
}

pub async fn a_message_whose_sender_died_is_claimed_again_after_the_lease(scene: Scene) {
    observe(&scene, &["mail"]).await;
    let rules = rules("oncall");
    let dead = claim(&scene, &rules).await.expect("it is due");
    assert_eq!(claim(&scene, &rules).await, None, "the lease protects it");
    deliver(&scene, &dead).await;
    observe(&scene, &["tax"]).await;
    let brief = NoticeTimes { lease: Duration::from_millis(1), ..AT_ONCE };
    let dead = scene.store.claim_notices(&rules, &brief).await.unwrap().expect("it is due");
    let mut next = None;
    while next.is_none() {
        next = claim(&scene, &rules).await;
    }
    let next = next.expect("another server claims it");
    assert_eq!(next.notices, dead.notices, "the same message, by which receivers know it");
    let late = scene.store.end_notices(&dead, &NoticeOutcome::Delivered).await.unwrap();
    assert!(!late, "the first sender is fenced off");
    deliver(&scene, &next).await;
    assert_eq!(claim(&scene, &rules).await, None);
}

pub async fn a_target_rests_after_a_message(scene: Scene) {
    observe(&scene, &["mail"]).await;
    let resting = NoticeTimes { pause: HOUR, ..AT_ONCE };
    let first = claim(&scene, &rules("oncall")).await.expect("it is due");
    deliver(&scene, &first).await;
    observe(&scene, &["tax"]).await;
    assert_eq!(scene.store.claim_notices(&rules("oncall"), &resting).await.unwrap(), None);
    assert!(
        scene.store.claim_notices(&rules("other"), &resting).await.unwrap().is_some(),
        "targets are independent"
    );
    assert!(claim(&scene, &rules("oncall")).await.is_some());
}

pub async fn a_message_that_failed_waits_and_is_shown(scene: Scene) {
    observe(&scene, &["mail"]).await;
    let rules = rules("oncall");
    let failed = |wait| NoticeOutcome::Failed { why: "it answered 500".to_owned(), wait };
    let first = claim(&scene, &rules).await.expect("it is due");
    assert!(scene.store.end_notices(&first, &failed(Duration::ZERO)).await.unwrap());
    let mut second = None;
    while second.is_none() {
        second = claim(&scene, &rules).await;
    }
    let second = second.expect("it is tried again");
    assert_eq!((second.failures, &second.notices), (1, &first.notices));
    assert!(scene.store.end_notices(&second, &failed(HOUR)).await.unwrap());
    assert_eq!(claim(&scene, &rules).await, None, "it waits");
    let [target] = &scene.store.alert_targets().await.unwrap()[..] else { panic!("one target") };
    assert_eq!((target.name.as_str(), target.failures), ("oncall", 2));
    assert_eq!(target.last_error.as_deref(), Some("it answered 500"));
    assert!(target.failing_since.is_some() && target.next_at.is_some() && target.sent_at.is_none());
}

pub async fn a_silenced_alert_begins_unnoticed(scene: Scene) {
    let (rules, mail) = (rules("oncall"), alert("mail").key);
    let ada = scene.store.acting_as(Actor::new("ada").unwrap().because(Some("maintenance")).unwrap());
    assert!(!ada.silence_alert(&mail, SilenceUntil::Over).await.unwrap(), "it has no incident");
    observe(&scene, &["mail"]).await;
    assert!(ada.silence_alert(&mail, SilenceUntil::For(HOUR)).await.unwrap());
    let silence = incidents(&scene, false).await.remove(0).silence.expect("it is silenced");
    assert_eq!((silence.by.as_str(), silence.reason.as_deref()), ("ada", Some("maintenance")));
    assert!(silence.until.is_some_and(|until| until > silence.at));
    assert_eq!(claim(&scene, &rules).await, None);
    end_all(&scene).await;
    observe(&scene, &["mail"]).await;
    assert_eq!(claim(&scene, &rules).await, None, "the silence lasts longer than the incident");
    assert!(ada.unsilence_alert(&mail).await.unwrap());
    assert!(!ada.unsilence_alert(&mail).await.unwrap());
    assert!(claim(&scene, &rules).await.is_some());
}

pub async fn a_silence_until_the_end_goes_with_its_incident(scene: Scene) {
    let (rules, mail) = (rules("oncall"), alert("mail").key);
    observe(&scene, &["mail"]).await;
    assert!(scene.store.silence_alert(&mail, SilenceUntil::Over).await.unwrap());
    assert_eq!(claim(&scene, &rules).await, None);
    end_all(&scene).await;
    assert_eq!(
        claim(&scene, &rules).await,
        None,
        "without a notice of the beginning, there is none of the end"
    );
    observe(&scene, &["mail"]).await;
    let told = claim(&scene, &rules).await.expect("the silence has ended");
    deliver(&scene, &told).await;
    assert!(scene.store.silence_alert(&mail, SilenceUntil::For(HOUR)).await.unwrap());
    end_all(&scene).await;
    assert!(claim(&scene, &rules).await.is_some(), "the end follows the beginning, in spite of the silence");
}

pub async fn incidents_are_deleted_some_time_after_their_end(scene: Scene) {
    observe(&scene, &["mail"]).await;
    let told = claim(&scene, &rules("oncall")).await.expect("it is due");
    deliver(&scene, &told).await;
    end_all(&scene).await;
    assert_eq!(incidents(&scene, true).await.len(), 1);
    wait::until("it is deleted", || async {
        let forgetful = IncidentTimes { keep: Duration::ZERO, ..LASTING };
        scene.store.observe_alerts(&[alert("tax")], &forgetful).await.unwrap();
        subjects(&incidents(&scene, true).await) == ["tax"]
    })
    .await;
}
