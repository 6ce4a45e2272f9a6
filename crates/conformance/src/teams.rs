//! Several teams on one store, each with its own configuration.

use std::time::Duration;

use milepost_core::bulk::definition::Definition;
use milepost_core::limit::{Limit, Rate};
use milepost_core::precedence::{Scope, Synced};
use milepost_core::schedule::{Schedule, Spec};
use milepost_testkit::Scene;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn daily(name: &str) -> Schedule {
    Schedule::new(name, Spec::every(DAY).expect("a valid interval"), Scene::job())
}

fn limits(team: &str) -> [Limit; 2] {
    let rate = Rate::new(1.0, 1);
    [Limit::kind(format!("{team}.mail"), rate), Limit::group(format!("{team}:*")).slots(2)]
}

async fn sync(scene: &Scene, team: &str, names: &[&str]) -> [Synced; 3] {
    let scope = Scope::Team(team.to_owned());
    let limits = if names.is_empty() { vec![] } else { limits(team).to_vec() };
    let schedules: Vec<_> = names.iter().map(|name| daily(name)).collect();
    let bulks: Vec<_> = names.iter().map(|name| Definition::new(*name)).collect();
    [
        scene.store.sync_limits(&limits, &scope).await.unwrap(),
        scene.store.sync_schedules(&schedules, &scope).await.unwrap(),
        scene.store.sync_bulks(&bulks, &scope).await.unwrap(),
    ]
}

/// Returns the names of all schedules, limits and bulk jobs.
async fn names(scene: &Scene) -> [Vec<String>; 3] {
    let store = &scene.store;
    let mut names = [
        store.schedules().await.unwrap().into_iter().map(|view| view.schedule.name).collect::<Vec<_>>(),
        store.limits().await.unwrap().into_iter().map(|view| view.limit.target.name().to_owned()).collect(),
        store.bulk_definitions().await.unwrap().into_iter().map(|definition| definition.name).collect(),
    ];
    names.iter_mut().for_each(|names| names.sort());
    names
}

pub async fn the_configuration_of_a_team_removes_nothing_of_another_team(scene: Scene) {
    let nothing = [Synced::default(), Synced::default(), Synced::default()];
    assert_eq!(sync(&scene, "billing", &["billing.a", "billing.b"]).await, nothing);
    assert_eq!(sync(&scene, "shop", &["shop.a"]).await, nothing);
    assert_eq!(sync(&scene, "bill", &[]).await, nothing, "a part of a team's name is no team");
    let all = ["billing.a", "billing.b", "shop.a"].map(str::to_owned).to_vec();
    let limited = ["billing.mail", "billing:*", "shop.mail", "shop:*"].map(str::to_owned).to_vec();
    assert_eq!(names(&scene).await, [all.clone(), limited, all]);

    let [limits, schedules, bulks] = sync(&scene, "billing", &[]).await;
    assert_eq!(limits.removed, ["kind billing.mail", "group billing:*"]);
    assert_eq!(
        (schedules.removed, bulks.removed),
        (vec!["billing.a".into(), "billing.b".into()], vec!["billing.a".into(), "billing.b".into()])
    );
    let left = vec!["shop.a".to_owned()];
    assert_eq!(names(&scene).await, [left.clone(), vec!["shop.mail".into(), "shop:*".into()], left]);
}

pub async fn a_configuration_without_a_team_removes_what_another_one_named(scene: Scene) {
    sync(&scene, "billing", &["billing.a"]).await;
    let removed = scene.store.sync_schedules(&[daily("b")], &Scope::All).await.unwrap().removed;
    assert_eq!(removed, ["billing.a"]);
}
