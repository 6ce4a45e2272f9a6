//! Work that events start in the store: waves of events become transactions of `start_work`.

use std::time::{Duration, Instant};

use milepost_core::error::StoreError;
use milepost_core::event::{Event, Publisher};
use milepost_core::event_work::{EventWork, Refusal, WORK_BYTES_MAX, WORKS_AT_ONCE_MAX, WorkTemplate};
use milepost_core::port::RelayStore;

use crate::sink::{Delivery, SinkDown};

/// How long events are started one by one before the results so far are returned, so that they are recorded.
const SINGLY_MAX: Duration = Duration::from_secs(3);

/// Starts the work of the first events of a wave, at least of one. Returns their deliveries in order.
///
/// # Errors
/// [`SinkDown`] if the store starts no work at present, or if the publisher has lost its lease.
pub(super) async fn start(
    store: &dyn RelayStore,
    publisher: &Publisher,
    template: &WorkTemplate,
    wave: &[Event],
) -> Result<Vec<Delivery>, SinkDown> {
    let made = make(template, wave).await;
    let works: Vec<EventWork> = made.iter().filter_map(|made| made.as_ref().ok().cloned()).collect();
    let together = !template.is_alone() && works.len() > 1;
    if together {
        match store.start_work(publisher, &works).await {
            Ok(Some(_)) => return Ok(made.into_iter().map(accepted).collect()),
            Ok(None) => return Err(lost()),
            Err(error) if Refusal::of(&error) == Refusal::StoreDown => return Err(down(&error)),
            // At least one of them is refused: each is started in its own transaction.
            Err(_) => {}
        }
    }
    singly(store, publisher, made).await
}

/// The work of an event, or why none can be made of it.
type Made = Result<EventWork, String>;

/// Makes the work of the first events of a wave, as much as one transaction may create. Templates may need many steps, so other tasks of the thread
/// get their turn after each.
async fn make(template: &WorkTemplate, wave: &[Event]) -> Vec<Made> {
    let (mut made, mut bytes) = (Vec::new(), 0);
    for event in wave.iter().take(WORKS_AT_ONCE_MAX) {
        let work = template.work_of(event).map_err(|fault| fault.to_string());
        bytes += work.as_ref().map_or(0, |of| of.work.bytes());
        if bytes > WORK_BYTES_MAX && !made.is_empty() {
            break;
        }
        made.push(work);
        tokio::task::yield_now().await;
    }
    made
}

/// Starts the work of each event in its own transaction, for a while.
async fn singly(
    store: &dyn RelayStore,
    publisher: &Publisher,
    made: Vec<Made>,
) -> Result<Vec<Delivery>, SinkDown> {
    let (began, mut deliveries) = (Instant::now(), Vec::with_capacity(made.len()));
    for made in made {
        if began.elapsed() > SINGLY_MAX && !deliveries.is_empty() {
            break;
        }
        let delivery = match made {
            Err(why) => Delivery::Unacceptable { why },
            Ok(work) => match store.start_work(publisher, &[work]).await {
                Ok(Some(_)) => Delivery::Acknowledged,
                Ok(None) if deliveries.is_empty() => return Err(lost()),
                Ok(None) => break,
                Err(error) => match Refusal::of(&error) {
                    Refusal::OfEvent => Delivery::Unacceptable { why: error.chain() },
                    Refusal::ForNow => Delivery::Refused { why: error.chain() },
                    Refusal::StoreDown if deliveries.is_empty() => return Err(down(&error)),
                    Refusal::StoreDown => break,
                },
            },
        };
        deliveries.push(delivery);
    }
    Ok(deliveries)
}

fn accepted(made: Made) -> Delivery {
    made.map_or_else(|why| Delivery::Unacceptable { why }, |_| Delivery::Acknowledged)
}

/// The receiver in errors.
const PLACE: &str = "the store";

fn down(error: &StoreError) -> SinkDown {
    SinkDown::now(PLACE, error.chain())
}

fn lost() -> SinkDown {
    SinkDown::now(PLACE, "the lease of this relay has expired; another one may start the work")
}
