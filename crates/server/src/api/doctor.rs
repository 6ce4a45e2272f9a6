//! The doctor: whether the store keeps its promises, and what can be mended safely.

use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use milepost_core::doctor::{Check, Cost, Finding, Look, PATIENCE_DEFAULT, Severity};
use milepost_core::port::Store;
use serde::{Deserialize, Serialize};
use tokio::sync::SemaphorePermit;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::app::App;
use crate::body::Body;
use crate::params::Query;
use crate::problem::Problem;

/// How long one question may take.
const QUESTION_MAX: Duration = Duration::from_secs(10);
/// How long a request asks and mends, questions that are under way not counted.
const REQUEST_MAX: Duration = Duration::from_secs(30);
/// How long what settles by itself gets before the second look.
const SETTLING: Duration = Duration::from_secs(3);
/// What one transaction of a repair mends at most, so that it stays short.
const MENDED_AT_ONCE: u32 = 200;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_checks))
        .routes(routes!(examine_store))
        .routes(routes!(repair_store))
}

/// One question to the store.
#[derive(Debug, Serialize, ToSchema)]
struct CheckView {
    /// Which.
    check: Check,
    /// How bad it is when it finds something.
    severity: Severity,
    /// What it reads: what needs attention now, or all that is kept.
    cost: Cost,
    /// What a finding means.
    means: &'static str,
    /// What a person does about it.
    mend: &'static str,
    /// What a repair does about it. Missing: nothing is safe without a person.
    repair: Option<&'static str>,
}

impl From<Check> for CheckView {
    fn from(check: Check) -> Self {
        let (severity, cost) = (check.severity(), check.cost());
        Self { check, severity, cost, means: check.means(), mend: check.mend(), repair: check.repair() }
    }
}

/// List the doctor's checks
///
/// Those that this store has.
#[utoipa::path(
    get, path = "/v1/doctor/checks", tag = "doctor", responses((status = 200, body = Vec<CheckView>)),
    security(("token" = ["viewer"]))
)]
async fn list_checks(State(app): State<App>) -> Json<Vec<CheckView>> {
    Json(app.store.checks().into_iter().map(CheckView::from).collect())
}

/// What is asked.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DoctorParams {
    /// Only this check.
    check: Option<Check>,
    /// Whether questions are asked, too, that read all that is kept. The default is not, unless one is named.
    #[serde(default)]
    full: bool,
}

/// What was found.
#[derive(Debug, Serialize, ToSchema)]
struct ExaminationView {
    /// Promises that are broken, and what is in their way.
    findings: Vec<Finding>,
    /// How many questions were answered.
    answered: usize,
    /// How many were not asked, to be quick.
    left_out: usize,
    /// Those that found no answer in time.
    unanswered: Vec<UnansweredView>,
}

/// A question without an answer.
#[derive(Debug, Serialize, ToSchema)]
struct UnansweredView {
    /// Which.
    check: Check,
    /// Why.
    why: String,
}

/// Examine the store
///
/// Asks one question a promise, each on one snapshot: jobs in flight are never a finding. It ends within about half a minute; what was not
/// asked by then is told. One examination runs at a time (429).
#[utoipa::path(
    get, path = "/v1/doctor", tag = "doctor", params(DoctorParams), responses((status = 200, body = ExaminationView)),
    security(("token" = ["viewer"]))
)]
async fn examine_store(
    State(app): State<App>,
    Query(params): Query<DoctorParams>,
) -> Result<Json<ExaminationView>, Problem> {
    let _turn = turn(&app)?;
    let known = app.store.checks();
    let total = known.len();
    let checks: Vec<Check> = match params.check {
        Some(check) => vec![known_check(&known, check).map_err(|problem| problem.at("query check"))?],
        None => known.into_iter().filter(|check| params.full || check.cost() == Cost::Quick).collect(),
    };
    let left_out = if params.check.is_some() { 0 } else { total - checks.len() };
    let mut examination = examine(app.store.as_ref(), &checks).await;
    examination.left_out = left_out;
    Ok(Json(examination))
}

/// Whose turn it is to examine the store, as long as this is held.
pub(crate) fn turn(app: &App) -> Result<SemaphorePermit<'_>, Problem> {
    let words = "somebody else examines the store; try again when that is done";
    app.doctor.try_acquire().map_err(|_| Problem::too_many("doctor_busy", words))
}

fn known_check(known: &[Check], check: Check) -> Result<Check, Problem> {
    if known.contains(&check) {
        return Ok(check);
    }
    let words = format!("{check} is a check for {} only", check.stores());
    Err(Problem::unprocessable("no_such_check", words))
}

fn look() -> Look {
    Look { now: Timestamp::now(), patience: PATIENCE_DEFAULT, time_limit: QUESTION_MAX }
}

async fn examine(store: &dyn Store, checks: &[Check]) -> ExaminationView {
    let mut examination =
        ExaminationView { findings: Vec::new(), answered: 0, left_out: 0, unanswered: Vec::new() };
    let began = Instant::now();
    let mut settling = Vec::new();
    for &check in checks {
        if began.elapsed() > REQUEST_MAX {
            let why = "there was no time left for it; ask for it alone".to_owned();
            examination.unanswered.push(UnansweredView { check, why });
            continue;
        }
        match store.examine(check, &look()).await {
            Ok(Some(finding)) if check.settles() => settling.push(finding),
            Ok(finding) => {
                examination.answered += 1;
                examination.findings.extend(finding);
            }
            Err(error) => examination.unanswered.push(UnansweredView { check, why: error.to_string() }),
        }
    }
    if !settling.is_empty() {
        tokio::time::sleep(SETTLING).await;
    }
    for first in settling {
        let check = first.check;
        match store.examine(check, &look()).await {
            Ok(second) => {
                examination.answered += 1;
                examination.findings.extend(first.confirmed_by(second));
            }
            Err(error) => examination.unanswered.push(UnansweredView { check, why: error.to_string() }),
        }
    }
    examination
}

/// What is to be mended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RepairRequest {
    /// What this check finds.
    check: Check,
    /// Why; stands in the audit.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
struct RepairAnswer {
    /// How many breaches were mended.
    mended: u64,
    /// What the check finds now.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<Finding>,
}

/// Mend what a check finds
///
/// As far as it is safe, in short transactions that are noted in the audit; within about half a minute.
#[utoipa::path(
    post, path = "/v1/doctor/repair", tag = "doctor", request_body = RepairRequest, responses((status = 200, body = RepairAnswer)),
    security(("token" = ["admin"]))
)]
async fn repair_store(
    State(app): State<App>,
    actor: RequestActor,
    Body(request): Body<RepairRequest>,
) -> Result<Json<RepairAnswer>, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let check = known_check(&store.checks(), request.check).map_err(|problem| problem.at("check"))?;
    if check.repair().is_none() {
        let words = format!("nothing of {check} can be mended without a person: {}", check.mend());
        return Err(Problem::unprocessable("not_repairable", words).at("check"));
    }
    let _turn = turn(&app)?;
    let began = Instant::now();
    let mut mended = 0;
    while began.elapsed() < REQUEST_MAX {
        let more = store.repair(check, &look(), MENDED_AT_ONCE).await?;
        mended += more;
        if more < u64::from(MENDED_AT_ONCE) {
            break;
        }
    }
    let left = store.examine(check, &look()).await?;
    Ok(Json(RepairAnswer { mended, left }))
}
