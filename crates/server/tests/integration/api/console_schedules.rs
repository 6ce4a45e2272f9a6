//! Tests of the pages and forms of schedules.

use milepost_core::schedule::{Makes, Misfire, ScheduleView, Source};

use crate::api::place::Place;

/// The fields of a form that creates a schedule of jobs.
const NIGHTLY: [(&str, &str); 13] = [
    ("operation", "create"),
    ("name", "nightly"),
    ("ticks", "30 3 * * *"),
    ("zone", "Europe/Berlin"),
    ("kind", "report"),
    ("document", "{\"day\": 100000000000000000001}"),
    ("queue", "slow"),
    ("group", "reports"),
    ("max_attempts", "3"),
    ("timeout", "1h 30m"),
    ("misfire", "all"),
    ("misfire_max", "7"),
    ("reason", "asked by the accountants"),
];

/// Returns the fields with other values, and without those whose value is `None`.
fn with<'a>(fields: &[(&'a str, &'a str)], others: &[(&'a str, Option<&'a str>)]) -> Vec<(&'a str, &'a str)> {
    let kept = fields.iter().filter(|(name, _)| others.iter().all(|(other, _)| other != name)).copied();
    kept.chain(others.iter().filter_map(|(name, value)| Some((*name, (*value)?)))).collect()
}

/// Returns the fingerprint that the form for changes contains.
async fn fingerprint(place: &Place, name: &str) -> String {
    place.store.schedule(name).await.unwrap().unwrap().schedule.fingerprint().to_string()
}

pub(crate) async fn a_schedule_is_created_edited_and_removed_by_forms(place: Place) {
    let (page, said) = place.form("/schedule/save", &NIGHTLY).await;
    assert!(page == "/schedules/nightly" && said.contains("is stored"), "{page}: {said}");
    let view = place.store.schedule("nightly").await.unwrap().unwrap();
    let Makes::Job(job) = &view.schedule.makes else { panic!("{view:?}") };
    assert_eq!(
        (job.kind.as_str(), job.queue.as_str(), job.group.as_deref()),
        ("report", "slow", Some("reports"))
    );
    assert_eq!(job.payload.get(), "{\"day\": 100000000000000000001}", "numbers keep their digits");
    assert_eq!((job.max_attempts, job.timeout.unwrap().as_secs()), (3, 5_400));
    assert_eq!(
        (view.schedule.misfire, view.schedule.spec.zone_name()),
        (Misfire::All { max: 7 }, "Europe/Berlin")
    );

    let html = place.page("/schedules/nightly").await.1;
    for shown in ["03:30:00", "slow, priority 2", "1h 30m", "the last 7 ticks", "100000000000000000001"] {
        assert!(html.contains(shown), "{shown} is not on the page");
    }
    let form = html.split("id=\"act-edit\"").nth(1).unwrap().split("</form>").next().unwrap();
    for (name, value) in
        [("ticks", "30 3 * * *"), ("timeout", "1h 30m"), ("misfire_max", "7"), ("group", "reports")]
    {
        assert!(
            form.contains(&format!("name=\"{name}\" value=\"{value}\"")),
            "{name} is not filled in: {form}"
        );
    }
    let before = fingerprint(&place, "nightly").await;
    assert!(form.contains(&format!("name=\"before\" value=\"{before}\"")), "{form}");
    let edit = with(
        &NIGHTLY,
        &[
            ("operation", Some("edit")),
            ("before", Some(&before)),
            ("ticks", Some("@every 10m")),
            ("group", None),
            ("misfire", Some("skip")),
        ],
    );
    place.form("/schedule/save", &edit).await;
    let view = place.store.schedule("nightly").await.unwrap().unwrap();
    assert_eq!(
        (view.schedule.spec.to_string().as_str(), view.schedule.misfire),
        ("@every 10m", Misfire::Skip)
    );

    let remove = [("operation", "remove"), ("name", "nightly"), ("reason", "the report is gone")];
    let (page, said) = place.form("/schedule/remove", &remove).await;
    assert!(page == "/schedules" && said.contains("is removed"), "{page}: {said}");
    assert!(place.store.schedule("nightly").await.unwrap().is_none());
}

pub(crate) async fn a_form_of_a_schedule_names_what_is_wrong(place: Place) {
    place.form("/schedule/save", &NIGHTLY).await;
    let other = |changes: &[(&'static str, Option<&'static str>)]| {
        let named = with(&NIGHTLY, &[("name", Some("other"))]);
        with(&named, changes)
    };
    for (fields, fault) in [
        (NIGHTLY.to_vec(), "the schedule nightly exists already"),
        (other(&[("ticks", Some("30 25 * * *"))]), "ticks"),
        (other(&[("zone", Some("Europe/Berlyn"))]), "zone: "),
        (other(&[("misfire_max", Some("1000000"))]), "misfire_max: "),
        (with(&other(&[]), &[("name", Some(".."))]), "name: "),
        (other(&[("kind", None)]), "a kind or a DAG"),
        (other(&[("dag", Some("settlement"))]), "not both"),
        (other(&[("document", Some("{"))]), "payload"),
        (other(&[("priority", Some("9"))]), "priority"),
        (other(&[("timeout", Some("an hour"))]), "timeout"),
        (other(&[("misfire", Some("never"))]), "misfire"),
        (other(&[("reason", None)]), "reason"),
    ] {
        let said = place.form("/schedule/save", &fields).await.1;
        assert!(said.starts_with("refused") && said.contains(fault), "{fault}: {said}");
    }
    assert_eq!(place.store.schedules().await.unwrap().len(), 1);
}

pub(crate) async fn a_schedule_of_batches_needs_an_input_that_fits_its_dag(place: Place) {
    let batches = [
        ("operation", "create"),
        ("name", "settlement"),
        ("ticks", "@daily"),
        ("dag", "settlement"),
        ("document", "{\"day\": \"${ tick.date }\"}"),
        ("misfire", "once"),
        ("reason", "monthly"),
    ];
    let said = place.form("/schedule/save", &batches).await.1;
    assert!(said.contains("Until then its ticks start nothing"), "the DAG is not defined: {said}");
    let definition = serde_json::json!({
        "name": "settlement", "tasks": { "a": { "kind": "x" } },
        "input_schema": { "type": "object", "required": ["day"], "properties": { "day": { "type": "string", "format": "date" } } }
    });
    assert!(place.post("/v1/dags", &definition).await.status.is_success());
    let before = fingerprint(&place, "settlement").await;
    let edit = with(&batches, &[("operation", Some("edit")), ("before", Some(&before))]);
    let said = place.form("/schedule/save", &edit).await.1;
    assert!(said.starts_with("done") && !said.contains("Until then"), "{said}");
    let said = place.form("/schedule/save", &with(&edit, &[("document", Some("{\"day\": 7}"))])).await.1;
    assert!(said.starts_with("refused") && said.contains("day"), "{said}");
    let said = place.form("/schedule/save", &with(&edit, &[("queue", Some("slow"))])).await.1;
    assert!(said.starts_with("refused") && said.contains("queue: it applies to jobs"), "{said}");
}

pub(crate) async fn forms_of_two_operators_do_not_overwrite_each_other_unseen(place: Place) {
    let both = tokio::join!(place.form("/schedule/save", &NIGHTLY), place.form("/schedule/save", &NIGHTLY));
    let stored = [both.0.1, both.1.1].iter().filter(|said| said.contains("is stored")).count();
    assert_eq!(stored, 1, "one of two forms creates the schedule");

    let before = fingerprint(&place, "nightly").await;
    let edit = |ticks| {
        let changes =
            [("operation", Some("edit")), ("before", Some(before.as_str())), ("ticks", Some(ticks))];
        place.form("/schedule/save", &with(&NIGHTLY, &changes))
    };
    assert!(edit("@every 10m").await.1.contains("is stored"));
    let said = edit("@every 20m").await.1;
    assert!(said.starts_with("refused") && said.contains("was changed or removed"), "{said}");
    let ticks = |view: ScheduleView| view.schedule.spec.to_string();
    assert_eq!(place.store.schedule("nightly").await.unwrap().map(ticks).as_deref(), Some("@every 10m"));

    place.form("/schedule/remove", &[("operation", "remove"), ("name", "nightly"), ("reason", "r")]).await;
    let said = edit("@every 30m").await.1;
    assert!(said.starts_with("refused") && said.contains("was changed or removed"), "{said}");
    assert!(place.store.schedule("nightly").await.unwrap().is_none(), "a removed schedule stays removed");
}

pub(crate) async fn a_schedule_of_a_configuration_can_be_edited_but_not_removed(place: Place) {
    place.form("/schedule/save", &NIGHTLY).await;
    let schedule = place.store.schedule("nightly").await.unwrap().unwrap().schedule;
    place.store.remove_schedule("nightly", Source::Operator).await.unwrap();
    place.store.put_schedule(&schedule, Source::Config).await.unwrap();
    assert!(!place.page("/schedules/nightly").await.1.contains("act-remove"));
    let remove = [("operation", "remove"), ("name", "nightly"), ("reason", "r")];
    let said = place.form("/schedule/remove", &remove).await.1;
    assert!(said.starts_with("refused") && said.contains("comes from a configuration"), "{said}");
    let before = fingerprint(&place, "nightly").await;
    let edit = with(&NIGHTLY, &[("operation", Some("edit")), ("before", Some(&before))]);
    let said = place.form("/schedule/save", &edit).await.1;
    assert!(said.contains("does not change it any more"), "{said}");
    assert_eq!(place.store.schedule("nightly").await.unwrap().unwrap().source, Source::Operator);
}

pub(crate) async fn forms_mean_exactly_the_named_object(place: Place) {
    for name in ["nightly", "nightly "] {
        place.form("/schedule/save", &with(&NIGHTLY, &[("name", Some(name))])).await;
    }
    place.form("/schedule/remove", &[("operation", "remove"), ("name", "nightly "), ("reason", "r")]).await;
    let left = place.store.schedules().await.unwrap();
    assert_eq!(left.iter().map(|view| view.schedule.name.as_str()).collect::<Vec<_>>(), ["nightly"]);
}

pub(crate) async fn ticks_are_previewed_before_a_schedule_is_created(place: Place) {
    let html = place.page("/schedules?ticks=0+3+*+*+1&zone=Europe/Berlin").await.1;
    assert!(html.matches("03:00:00").count() == 10 && html.matches(">Mon ").count() == 10, "{html}");
    let html = place.page("/schedules?ticks=0+25+*+*+1").await.1;
    assert!(html.contains("class=\"err\"") && html.contains("25"), "{html}");
}
