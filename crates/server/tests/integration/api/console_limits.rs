//! Tests of the forms that set and change limits.

use milepost_core::limit::{Limit, Rate, Source, Target};

use crate::api::place::Place;

async fn limit(place: &Place, target: &Target) -> Limit {
    let limits = place.store.limits().await.unwrap();
    limits.into_iter().find(|view| view.limit.target == *target).expect("there is no such limit").limit
}

pub(crate) async fn a_limit_is_set_and_changed_by_forms(place: Place) {
    let group = Target::Group("tenant:*".to_owned());
    let set = async |rate: &str, burst: &str, slots: &str| {
        let fields = [
            ("target", "group"),
            ("name", "tenant:*"),
            ("rate", rate),
            ("burst", burst),
            ("slots", slots),
            ("reason", "the partner asked"),
        ];
        place.form("/limits/put", &fields).await.1
    };
    assert!(set("7/15m", "3", "4").await.contains("is set"));
    let before = limit(&place, &group).await;
    assert_eq!((before.slots, before.rate.unwrap().burst), (Some(4), 3));

    let html = place.page("/settings").await.1;
    let form = html.split("id=\"act-edit-group-").nth(1).unwrap().split("</form>").next().unwrap();
    let value = |name: &str| {
        form.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap().split('"').next().unwrap()
    };
    let (rate, burst) = (value("rate"), value("burst"));
    set(rate, burst, "5").await;
    let after = limit(&place, &group).await;
    assert_eq!(
        (after.slots, after.rate),
        (Some(5), before.rate),
        "{rate}: a rate that was not edited is unchanged"
    );
    set("", "", "2").await;
    assert_eq!(
        limit(&place, &group).await,
        Limit::group("tenant:*").slots(2),
        "the complete limit is replaced"
    );
}

pub(crate) async fn a_form_of_a_limit_names_what_is_wrong(place: Place) {
    for (target, rate, burst, slots, fault) in [
        ("kind", "often", "", "", "often"),
        ("kind", "", "", "", "it has no effect"),
        ("kind", "1/s", "", "3", "kind"),
        ("group", "", "3", "1", "a burst needs a rate"),
        ("group", "1/s", "many", "", "burst"),
        ("group", "", "", "5000", "5000"),
        ("job", "1/s", "", "", "not kind or group"),
    ] {
        let fields = [
            ("target", target),
            ("name", "mail"),
            ("rate", rate),
            ("burst", burst),
            ("slots", slots),
            ("reason", "r"),
        ];
        let said = place.form("/limits/put", &fields).await.1;
        assert!(
            said.starts_with("refused") && said.contains(fault),
            "{target} {rate} {burst} {slots}: {said}"
        );
    }
    assert!(place.store.limits().await.unwrap().is_empty());
}

pub(crate) async fn a_limit_of_a_configuration_becomes_an_operators(place: Place) {
    place.store.put_limit(&Limit::kind("mail", Rate::new(5.0, 5)), Source::Config).await.unwrap();
    let fields = [("target", "kind"), ("name", "mail"), ("rate", "1/s"), ("reason", "the server is slow")];
    let said = place.form("/limits/put", &fields).await.1;
    assert!(said.contains("does not change it any more"), "{said}");
    assert_eq!(place.store.limits().await.unwrap()[0].source, Source::Operator);
}
