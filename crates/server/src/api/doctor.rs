//! The doctor: checks of the store's invariants, and safe repairs.

use std::time::{Duration, Instant};

use axum::Json;
use jiff::Timestamp;
use milepost_core::doctor::{Check, Cost, Finding, Look, PATIENCE_DEFAULT, Severity};
use milepost_core::port::Store;
use serde::{Deserialize, Serialize};
use tokio::sync::SemaphorePermit;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Query;
use crate::problem::{Code, Problem};

/// Time limit of one check.
const QUESTION_MAX: Duration = Duration::from_secs(10);
/// How long a request starts new checks or repairs; one in progress is finished.
const REQUEST_MAX: Duration = Duration::from_secs(30);
/// Time before a finding that may resolve without intervention is checked again.
const SETTLING: Duration = Duration::from_secs(3);
/// Maximum number of repairs in one transaction, so that it stays short.
const MENDED_AT_ONCE: u32 = 200;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list_checks))
        .routes(routes!(examine_store))
        .routes(routes!(repair_store))
}

/// A check of the store.
#[derive(Debug, Serialize, ToSchema)]
struct CheckView {
    /// The check.
    check: Check,
    /// The severity of its findings.
    severity: Severity,
    /// The amount that it reads: unfinished work and small tables, or the complete store.
    cost: Cost,
    /// The meaning of a finding.
    means: &'static str,
    /// The remedy for an operator.
    mend: &'static str,
    /// The effect of a repair. Missing if no automatic repair is safe.
    repair: Option<&'static str>,
}

impl From<Check> for CheckView {
    fn from(check: Check) -> Self {
        let (severity, cost) = (check.severity(), check.cost());
        Self { check, severity, cost, means: check.means(), mend: check.remedy(), repair: check.repair() }
    }
}

/// List the doctor's checks
///
/// The checks that apply to this store.
#[utoipa::path(
    get, path = "/v1/doctor/checks", tag = "doctor", responses((status = 200, body = Vec<CheckView>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("the doctor examines and repairs the whole store")))
)]
async fn list_checks(app: App) -> Json<Vec<CheckView>> {
    Json(app.store.checks().into_iter().map(CheckView::from).collect())
}

/// The requested checks.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DoctorParams {
    /// Only this check.
    check: Option<Check>,
    /// Whether to run also the checks that read the complete store. The default is `false`; a check that is named always runs.
    #[serde(default)]
    full: bool,
}

/// The result of an examination.
#[derive(Debug, Serialize, ToSchema)]
struct ExaminationView {
    /// The violated guarantees, and risks to guarantees.
    findings: Vec<Finding>,
    /// Number of completed checks.
    answered: usize,
    /// Number of checks that were skipped because they are not quick.
    left_out: usize,
    /// Checks that were not completed.
    unanswered: Vec<UnansweredView>,
}

/// A check that was not completed.
#[derive(Debug, Serialize, ToSchema)]
struct UnansweredView {
    /// The check.
    check: Check,
    /// The reason.
    why: String,
}

/// Examine the store
///
/// Runs one check for each guarantee, each on one snapshot: jobs in flight are never a finding. Ends after about half a minute at most, and
/// lists the checks that were not completed by then. One examination runs at a time (429).
#[utoipa::path(
    get, path = "/v1/doctor", tag = "doctor", params(DoctorParams), responses((status = 200, body = ExaminationView)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("the doctor examines and repairs the whole store")))
)]
async fn examine_store(
    app: App,
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

/// Acquires the permit to examine the store; one examination runs at a time.
pub(crate) fn turn(app: &App) -> Result<SemaphorePermit<'_>, Problem> {
    let words = "another examination of the store is in progress; try again when it has ended";
    app.doctor.try_acquire().map_err(|_| Problem::new(Code::DoctorBusy, words))
}

fn known_check(known: &[Check], check: Check) -> Result<Check, Problem> {
    if known.contains(&check) {
        return Ok(check);
    }
    let words = format!("the check {check} exists for {} only", check.stores());
    Err(Problem::new(Code::NoSuchCheck, words))
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
            let why = "the time limit was reached before it started; run it separately".to_owned();
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

/// A repair.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RepairRequest {
    /// The check whose findings are repaired.
    check: Check,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The result.
#[derive(Debug, Serialize, ToSchema)]
struct RepairAnswer {
    /// Number of repaired findings.
    mended: u64,
    /// The findings of the check after the repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<Finding>,
}

/// Repair the findings of a check
///
/// Repairs only what is safe, in short transactions that are recorded in the audit log. Ends after about half a minute at most.
#[utoipa::path(
    post, path = "/v1/doctor/repair", tag = "doctor", request_body = RepairRequest, responses((status = 200, body = RepairAnswer)),
    security(("token" = ["admin"])),
    extensions(("x-limited-tokens" = json!("the doctor examines and repairs the whole store")))
)]
async fn repair_store(
    app: App,
    actor: RequestActor,
    Body(request): Body<RepairRequest>,
) -> Result<Json<RepairAnswer>, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let check = known_check(&store.checks(), request.check).map_err(|problem| problem.at("check"))?;
    if check.repair().is_none() {
        let words = format!("findings of {check} cannot be repaired automatically: {}", check.remedy());
        return Err(Problem::new(Code::NotRepairable, words).at("check"));
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
