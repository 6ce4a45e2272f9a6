//! The second part of the demo: bulk notices to a million channels. Two runs of one group are due at the same time, a process is killed in
//! the middle, and a run is aborted and resumed.

mod channels;
mod show;
#[cfg(test)]
mod tampering;
mod verify;

use std::time::Duration;

use anyhow::Result;
use milepost::bulk::{Bulk, Definition, Labels, Sizing};
use milepost::{HistoryEntry, NewJob, WorkerBuilder};
use milepost_cli_support::store::StoreAddress;
use serde_json::json;

use super::ledger::Scope;
use super::places::PLACES_MAX;
use super::plan::Plan;
use channels::Channels;

pub(super) use show::perform;

/// The maximum number of channels of all places.
const CHANNELS_MAX: u64 = 1_000_000;
/// The minimum duration of a run in seconds, so that it can be observed, also by a demo that gets no processor time for a while.
const RUN_S: u64 = 8;
/// The maximum distance of a nearby channel from the centre, in kilometres.
const NEAR_KM: f64 = 1_500.0;
/// The earth's mean radius, in kilometres.
const EARTH_KM: f64 = 6_371.0;
/// The centre near Istanbul: latitude and longitude in degrees.
const CENTRE: (f64, f64) = (41.01, 28.95);

/// Selects all channels.
const ALL: &str = "select id from milepost_demo_channel where world = :world and id > :cursor \
                   order by id limit :limit";
/// Selects the channels whose point on the unit sphere is close enough to that of the centre.
const NEAR: &str = "select id from milepost_demo_channel where world = :world and id > :cursor \
                    and x * :x + y * :y + z * :z >= :nearness order by id limit :limit";
/// Writes a notice for each channel.
const NOTIFY: &str = "insert into milepost_demo_notice (run, channel) select :bulk_id, id from chunk";

/// Observations that the tables do not contain.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    pub(super) histories: Vec<Vec<HistoryEntry>>,
    /// The number of chunks that were committed after the abort was acknowledged.
    pub(super) chunks_after_abort: u64,
    /// The number of targets processed by the aborted run, and the total.
    pub(super) aborted_at: u64,
    pub(super) aborted_of: u64,
}

/// One of the two bulk jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notice {
    /// Notices to all channels.
    Popular,
    /// Notices to the channels near a place.
    Nearby,
}

impl Notice {
    const BOTH: [Self; 2] = [Self::Popular, Self::Nearby];

    const fn name(self) -> &'static str {
        match self {
            Self::Popular => "demo.popular",
            Self::Nearby => "demo.nearby",
        }
    }

    const fn source(self) -> &'static str {
        match self {
            Self::Popular => ALL,
            Self::Nearby => NEAR,
        }
    }

    /// Returns the definition for a demo of this scope.
    fn definition(self, scope: &Scope, world: World) -> Definition {
        let category = match self {
            Self::Popular => "popular content",
            Self::Nearby => "by place",
        };
        let mut definition = Definition::new(self.name());
        definition.labels =
            Labels { r#type: Some("notification rows".to_owned()), category: Some(category.to_owned()) };
        definition.group.clone_from(&scope.queue);
        definition.queue = queue(scope);
        definition.sizing = Sizing { target: Duration::from_millis(200), ..Sizing::default() };
        definition.load.rows_per_s = Some((world.0 / RUN_S).max(1) as f64);
        definition
    }

    /// Returns its parameters.
    fn params(self, world: World) -> serde_json::Value {
        match self {
            Self::Popular => json!({ "world": world.0 }),
            Self::Nearby => {
                let [x, y, z] = on_sphere(CENTRE.0, CENTRE.1);
                json!({ "world": world.0, "x": x, "y": y, "z": z, "nearness": (NEAR_KM / EARTH_KM).cos() })
            }
        }
    }

    fn job(self, scope: &Scope, world: World) -> Result<NewJob> {
        Ok(self.definition(scope, world).direct(NewJob::new(self.name(), &self.params(world))?))
    }
}

/// Returns the queue for the bulk jobs of a demo, which is separate from that of its other jobs.
fn queue(scope: &Scope) -> String {
    format!("{}-bulk", scope.queue)
}

/// The number of channels. It also distinguishes one demo's channels from those of a smaller demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct World(u64);

impl World {
    const fn of(plan: Plan) -> Self {
        Self(plan.places as u64 * CHANNELS_MAX / PLACES_MAX as u64)
    }

    /// Returns the channels of a place. Places have equal numbers of channels, plus or minus one.
    fn channels_of(self, place: u32, plan: Plan) -> std::ops::Range<u64> {
        let before = |place: u64| place * self.0 / plan.places as u64;
        before(place as u64 - 1) + 1..before(place as u64) + 1
    }
}

/// Returns a point on the unit sphere, so that distances can be compared with a dot product.
fn on_sphere(lat: f64, lng: f64) -> [f64; 3] {
    let (lat, lng) = (lat.to_radians(), lng.to_radians());
    [lat.cos() * lng.cos(), lat.cos() * lng.sin(), lat.sin()]
}

/// Configures a worker process of the demo to run both bulk jobs.
pub(super) async fn serve(
    worker: WorkerBuilder,
    address: &StoreAddress,
    scope_queue: &str,
    plan: Plan,
) -> Result<WorkerBuilder> {
    let scope = Scope::of(scope_queue);
    let channels = channels::open(address).await?;
    Notice::BOTH.into_iter().try_fold(worker, |worker, notice| {
        Ok(worker.bulk(bulk(channels.as_ref(), notice, &scope, World::of(plan))?))
    })
}

fn bulk(channels: &dyn Channels, notice: Notice, scope: &Scope, world: World) -> Result<Bulk> {
    let definition = notice.definition(scope, world);
    let work = channels.work(&definition, notice.source(), NOTIFY)?;
    Ok(Bulk::new(definition, work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_channel_belongs_to_one_place() {
        for places in [1000, 3000, PLACES_MAX] {
            let plan = Plan { places };
            let world = World::of(plan);
            let mut next = 1;
            for place in 1..=places {
                let channels = world.channels_of(place, plan);
                assert_eq!(channels.start, next);
                assert!((5..=6).contains(&(channels.end - channels.start)), "{channels:?}");
                next = channels.end;
            }
            assert_eq!(next, world.0 + 1);
        }
        assert_eq!(World::of(Plan { places: PLACES_MAX }), World(CHANNELS_MAX));
    }

    #[test]
    fn near_is_near() {
        let nearness = |a: (f64, f64), b: (f64, f64)| {
            let (a, b) = (on_sphere(a.0, a.1), on_sphere(b.0, b.1));
            a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>()
        };
        let limit = (NEAR_KM / EARTH_KM).cos();
        assert!(nearness(CENTRE, (37.98, 23.73)) >= limit, "Athens is 560 km away");
        assert!(nearness(CENTRE, (48.86, 2.35)) < limit, "Paris is 2,250 km away");
    }
}
