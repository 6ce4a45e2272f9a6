//! The codes of errors of the API, with their meanings and remedies.

use axum::http::StatusCode;

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

macro_rules! codes {
    ($($name:ident = $code:literal, $status:ident, means $means:literal, remedy $remedy:literal;)+) => {
        /// A stable code of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code { $(#[doc = $means] $name,)+ }

        impl Code {
            /// All codes.
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the code as clients see it.
            pub(crate) const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// Returns its usual HTTP status.
            pub(crate) const fn status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status,)+ }
            }

            /// Returns what it means.
            #[cfg(test)]
            const fn means(self) -> &'static str {
                match self { $(Self::$name => $means,)+ }
            }

            /// Returns what a client or an operator can do.
            #[cfg(test)]
            const fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)+ }
            }
        }
    };
}

codes! {
    BatchRefused = "batch_refused", CONFLICT,
        means "The batch does not allow the operation, such as a rerun of a batch in which nothing failed.",
        remedy "See `detail`, and the state of the batch.";
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE,
        means "The body is larger than the limit.",
        remedy "Split the request.";
    BodyUnreadable = "body_unreadable", BAD_REQUEST,
        means "The body ended early or could not be received.",
        remedy "Repeat the request.";
    BulkRefused = "bulk_refused", CONFLICT,
        means "The run of the bulk job does not allow the operation, for example because it has ended.",
        remedy "See `detail`, and the state of the run.";
    CheckFailed = "check_failed", INTERNAL_SERVER_ERROR,
        means "A check of the server ended unexpectedly.",
        remedy "Report it, with the server's log.";
    DoctorBusy = "doctor_busy", TOO_MANY_REQUESTS,
        means "Another examination is running.",
        remedy "Repeat the request when it has ended.";
    EventIdTaken = "event_id_taken", CONFLICT,
        means "An event with this id and other content exists.",
        remedy "Use a new id, or send the same content.";
    Fenced = "fenced", CONFLICT,
        means "The run no longer owns its job: it was taken away, or has ended.",
        remedy "Stop the work on this run; nothing was changed.";
    ForgedRequest = "forged_request", FORBIDDEN,
        means "The form of the console does not belong to this session.",
        remedy "Reload the page.";
    HiddenData = "hidden_data", UNPROCESSABLE_ENTITY,
        means "The request is for a value that the configuration hides, or has the placeholder in its place.",
        remedy "Search by another value; give the value itself instead of the placeholder.";
    Held = "held", SERVICE_UNAVAILABLE,
        means "An open transaction of another program holds what the request needs, such as a key, a group, an aggregate or a job.",
        remedy "End that transaction, then repeat the request with the same key.";
    IdempotencyKeyTaken = "idempotency_key_taken", CONFLICT,
        means "The `Idempotency-Key` was used for another request.",
        remedy "Use one key for each request.";
    IllegalTransition = "illegal_transition", CONFLICT,
        means "The state of the job or batch does not allow the operation.",
        remedy "See [the states](STATES.md); `detail` names those that allow it.";
    InboxRefused = "inbox_refused", CONFLICT,
        means "The inbox does not allow the operation: it has passed this sequence.",
        remedy "See the state of the consumer.";
    InvalidBackoff = "invalid_backoff", UNPROCESSABLE_ENTITY,
        means "The backoff of a kind contradicts itself, or the worker does not serve the kind.",
        remedy "Correct the field at `at`.";
    InvalidBatch = "invalid_batch", UNPROCESSABLE_ENTITY,
        means "The batch cannot be started with these values.",
        remedy "Correct the request; `detail` names the fault.";
    InvalidBody = "invalid_body", UNPROCESSABLE_ENTITY,
        means "A field of the body is missing, unknown, or has a value that is not permitted.",
        remedy "Correct the field at `at`.";
    InvalidBulk = "invalid_bulk", UNPROCESSABLE_ENTITY,
        means "The run of the bulk job cannot be started or changed with these values.",
        remedy "Correct the request; `detail` names the fault.";
    InvalidCheckpoint = "invalid_checkpoint", UNPROCESSABLE_ENTITY,
        means "A checkpoint or a progress report is too large or is not permitted.",
        remedy "Report a smaller one.";
    InvalidClaim = "invalid_claim", UNPROCESSABLE_ENTITY,
        means "The claim asks for too many jobs, queues or kinds, or for none.",
        remedy "Correct the field at `at`.";
    InvalidDag = "invalid_dag", UNPROCESSABLE_ENTITY,
        means "The definition has errors; `faults` lists all of them.",
        remedy "Correct them, and define it again.";
    InvalidEvent = "invalid_event", UNPROCESSABLE_ENTITY,
        means "An event has a value that is not permitted.",
        remedy "Correct the event at `at`.";
    InvalidInbox = "invalid_inbox", UNPROCESSABLE_ENTITY,
        means "The setting of a consumer is not permitted.",
        remedy "Correct the request; `detail` names the fault.";
    InvalidInput = "invalid_input", UNPROCESSABLE_ENTITY,
        means "The input does not match the schema of the DAG.",
        remedy "Correct the input; `detail` names the fault.";
    InvalidJob = "invalid_job", UNPROCESSABLE_ENTITY,
        means "A job has a value that is not permitted.",
        remedy "Correct the job at `at`.";
    InvalidLimit = "invalid_limit", UNPROCESSABLE_ENTITY,
        means "The limit is not permitted.",
        remedy "Correct the request; `detail` names the fault.";
    InvalidParameter = "invalid_parameter", BAD_REQUEST,
        means "A parameter is unknown, or has a value that is not permitted.",
        remedy "Correct the parameter at `at`.";
    InvalidPosition = "invalid_position", BAD_REQUEST,
        means "The position in the stream is not one that this server gave.",
        remedy "Follow the stream from its end, and read the state again.";
    InvalidQueue = "invalid_queue", UNPROCESSABLE_ENTITY,
        means "The name of the queue is not permitted.",
        remedy "Correct the name.";
    InvalidReason = "invalid_reason", UNPROCESSABLE_ENTITY,
        means "The reason is too long, or contains characters that are not permitted.",
        remedy "Shorten the reason.";
    InvalidRetention = "invalid_retention", UNPROCESSABLE_ENTITY,
        means "The period is not permitted.",
        remedy "Correct the request; `detail` names the fault.";
    InvalidSchedule = "invalid_schedule", UNPROCESSABLE_ENTITY,
        means "The schedule is not permitted.",
        remedy "Correct the request; `detail` names the fault.";
    InvalidSilence = "invalid_silence", UNPROCESSABLE_ENTITY,
        means "The alert or the duration of a silence is not permitted.",
        remedy "Correct the request; `detail` names the fault.";
    InvalidToken = "invalid_token", UNPROCESSABLE_ENTITY,
        means "The token cannot be created or changed with these values.",
        remedy "Correct the request; `detail` names the fault.";
    InvalidWorker = "invalid_worker", UNPROCESSABLE_ENTITY,
        means "The registration of the worker is not permitted.",
        remedy "Correct the field at `at`.";
    KeyTwice = "key_twice", UNPROCESSABLE_ENTITY,
        means "The request contains a key twice.",
        remedy "Send each key once.";
    LastedAnHour = "lasted_an_hour", UNAUTHORIZED,
        means "The stream has lasted an hour.",
        remedy "Reconnect with the last id.";
    MalformedJson = "malformed_json", BAD_REQUEST,
        means "The body is not JSON.",
        remedy "Correct the body at `at`.";
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED,
        means "The path does not have this method.",
        remedy "See the header `Allow` and `/openapi.json`.";
    MetricsFailed = "metrics_failed", INTERNAL_SERVER_ERROR,
        means "The metrics could not be written.",
        remedy "Report it, with the server's log.";
    NoHost = "no_host", BAD_REQUEST,
        means "The request has no `Host`.",
        remedy "Send the header.";
    NoRandomNumbers = "no_random_numbers", INTERNAL_SERVER_ERROR,
        means "The machine gives no random numbers, so sign-ins are impossible.",
        remedy "Repair the machine.";
    NoRoleKnown = "no_role_known", FORBIDDEN,
        means "The server defines no role for the path.",
        remedy "Report it.";
    NoSuchAggregate = "no_such_aggregate", NOT_FOUND,
        means "The aggregate has no events in the log.",
        remedy "Check its type and id.";
    NoSuchAlert = "no_such_alert", NOT_FOUND,
        means "The alert has no open incident: it has ended, or no server records alerts.",
        remedy "List the alerts; configure a target, without which servers record none.";
    NoSuchBatch = "no_such_batch", NOT_FOUND,
        means "The batch does not exist: it never did, or retention has deleted it.",
        remedy "Check the id.";
    NoSuchBulk = "no_such_bulk", NOT_FOUND,
        means "The bulk job is not defined.",
        remedy "Start a worker with its definition.";
    NoSuchBulkJob = "no_such_bulk_job", NOT_FOUND,
        means "The run of the bulk job does not exist.",
        remedy "Check the id.";
    NoSuchBulkRun = "no_such_bulk_run", NOT_FOUND,
        means "The job is not a run of a bulk job, or does not exist.",
        remedy "Check the id.";
    NoSuchCheck = "no_such_check", UNPROCESSABLE_ENTITY,
        means "The doctor has no such check for this store.",
        remedy "See [the list](DOCTOR.md).";
    NoSuchDag = "no_such_dag", NOT_FOUND,
        means "The DAG is not defined.",
        remedy "Define it first.";
    NoSuchJob = "no_such_job", NOT_FOUND,
        means "The job does not exist: it never did, or retention has deleted it.",
        remedy "Check the id.";
    NoSuchLetter = "no_such_letter", NOT_FOUND,
        means "The dead letter does not exist.",
        remedy "List the dead letters again.";
    NoSuchLimit = "no_such_limit", NOT_FOUND,
        means "The kind or group has no separate limit.",
        remedy "Nothing needs to be removed.";
    NoSuchPath = "no_such_path", NOT_FOUND,
        means "The server has no such path.",
        remedy "See `/openapi.json`.";
    NoSuchSchedule = "no_such_schedule", NOT_FOUND,
        means "The schedule does not exist.",
        remedy "Check its name.";
    NoSuchSubscription = "no_such_subscription", NOT_FOUND,
        means "The subscription does not exist.",
        remedy "Start a relay with it in its configuration.";
    NoSuchTask = "no_such_task", NOT_FOUND,
        means "The batch has no such task.",
        remedy "Check its name.";
    NoSuchVersion = "no_such_version", NOT_FOUND,
        means "The DAG has no such version.",
        remedy "List its versions.";
    NoToken = "no_token", UNAUTHORIZED,
        means "The server requires a token.",
        remedy "Send `Authorization: Bearer …`, or sign in.";
    NotJson = "not_json", UNSUPPORTED_MEDIA_TYPE,
        means "The content type of the body is not JSON.",
        remedy "Send `Content-Type: application/json`.";
    NotRepairable = "not_repairable", UNPROCESSABLE_ENTITY,
        means "No repair of this check is safe.",
        remedy "Follow [its instructions](DOCTOR.md).";
    OfConfiguration = "of_configuration", CONFLICT,
        means "A configuration owns the limit or schedule.",
        remedy "Change the configuration.";
    OutsideScope = "outside_scope", FORBIDDEN,
        means "The token is limited to queues and kinds, and the request is for others, or for the whole store.",
        remedy "Use a token without limits, or one with the limits that `detail` names.";
    Overtaken = "overtaken", CONFLICT,
        means "The batch was changed by another call at the same time.",
        remedy "Read its state again, then repeat the request.";
    PageFailed = "page_failed", INTERNAL_SERVER_ERROR,
        means "A page of the console could not be made.",
        remedy "Report it, with the server's log.";
    Refused = "refused", UNPROCESSABLE_ENTITY,
        means "The database refused the values.",
        remedy "Correct the request; `detail` names the fault.";
    RelayRefused = "relay_refused", CONFLICT,
        means "The subscription or its events do not allow the operation.",
        remedy "See `detail`, and the state of the subscription.";
    RepeatedHeader = "repeated_header", BAD_REQUEST,
        means "A header is there twice.",
        remedy "Send it once.";
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT,
        means "The request did not arrive within the time limit.",
        remedy "Repeat the request.";
    RevealRefused = "reveal_refused", FORBIDDEN,
        means "The configuration does not permit the caller to see hidden values.",
        remedy "Use a token with a role in `reveal` of the section `[hide]`, or have the role added there.";
    RoleNeeded = "role_needed", FORBIDDEN,
        means "The token lacks the role.",
        remedy "Use a token with the role that `detail` names.";
    RunTwice = "run_twice", UNPROCESSABLE_ENTITY,
        means "The request ends a run twice.",
        remedy "Send each end once.";
    SchemaDoesNotFit = "schema_does_not_fit", SERVICE_UNAVAILABLE,
        means "The store has another version than the server.",
        remedy "Run `milepost migrate`, or upgrade the server.";
    SessionOver = "session_over", UNAUTHORIZED,
        means "The session has ended.",
        remedy "Sign in again.";
    ShuttingDown = "shutting_down", SERVICE_UNAVAILABLE,
        means "The server is shutting down.",
        remedy "Repeat the request, with the same key.";
    StoreFailed = "store_failed", INTERNAL_SERVER_ERROR,
        means "The store failed; the cause is in the server's log.",
        remedy "Read the log, and run `milepost doctor`.";
    StoreMoves = "store_moves", SERVICE_UNAVAILABLE,
        means "The store is being moved, or was moved.",
        remedy "Use the store that `detail` names.";
    StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE,
        means "The store does not respond.",
        remedy "Repeat the request after the time in `Retry-After`.";
    TokenExpired = "token_expired", UNAUTHORIZED,
        means "The token has expired.",
        remedy "Create a new one.";
    TokenNotYetValid = "token_not_yet_valid", UNAUTHORIZED,
        means "The token is not valid yet.",
        remedy "Wait, or create another one.";
    TokenRevoked = "token_revoked", UNAUTHORIZED,
        means "The token was revoked.",
        remedy "Create a new one.";
    TooMany = "too_many", PAYLOAD_TOO_LARGE,
        means "The request contains, or asks for, more than a call accepts.",
        remedy "Split the request.";
    TooManyBytes = "too_many_bytes", TOO_MANY_REQUESTS,
        means "The bodies in progress are too large in total: those of this client, or, with status 503, those of all.",
        remedy "Repeat the request after the time in `Retry-After`.";
    TooManyConnections = "too_many_connections", SERVICE_UNAVAILABLE,
        means "The server has no place for another connection.",
        remedy "Repeat the request later.";
    TooManyInFlight = "too_many_in_flight", TOO_MANY_REQUESTS,
        means "The client has too many requests in progress.",
        remedy "Repeat the request after the time in `Retry-After`.";
    TooManyJobs = "too_many_jobs", UNPROCESSABLE_ENTITY,
        means "The filter matches more jobs than one call may change.",
        remedy "Narrow the filter.";
    TooManyRequests = "too_many_requests", TOO_MANY_REQUESTS,
        means "The client sends too many requests.",
        remedy "Repeat the request after the time in `Retry-After`.";
    TooManyStreams = "too_many_streams", TOO_MANY_REQUESTS,
        means "The client has too many open streams.",
        remedy "Close some.";
    TooManyWorkers = "too_many_workers", TOO_MANY_REQUESTS,
        means "Too many workers are registered through this server.",
        remedy "Register fewer, or stop those that are not used.";
    TwoHosts = "two_hosts", BAD_REQUEST,
        means "The request names two hosts.",
        remedy "Send one.";
    UnknownToken = "unknown_token", UNAUTHORIZED,
        means "The token does not exist.",
        remedy "Check it, or create a new one.";
    WorkerLost = "worker_lost", CONFLICT,
        means "The worker has lost its lease, and its jobs were given to others.",
        remedy "Stop its jobs, and register again.";
    WrongHost = "wrong_host", MISDIRECTED_REQUEST,
        means "The server does not answer under this host name.",
        remedy "Add it to `allowed_hosts`, or use another name.";
    WrongOrigin = "wrong_origin", FORBIDDEN,
        means "The request comes from a page of another site.",
        remedy "Call the API from your own program.";
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::path::Path;

    use super::Code;

    const BEGIN: &str = "<!-- codes: made from the code -->\n";
    const END: &str = "<!-- end of codes -->\n";

    /// Run with `MILEPOST_UPDATE_DOCS=1` to update the page.
    #[test]
    fn the_page_of_codes_lists_every_code() {
        let mut table = "\n| code | status | meaning | what to do |\n|---|---|---|---|\n".to_owned();
        for code in Code::ALL {
            let status = code.status().as_u16();
            writeln!(table, "| `{}` | {status} | {} | {} |", code.as_str(), code.means(), code.remedy())
                .unwrap();
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ERRORS.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (head, rest) = page.split_once(BEGIN).unwrap();
        let (_, tail) = rest.split_once(END).unwrap();
        let expected = format!("{head}{BEGIN}{table}\n{END}{tail}");
        if std::env::var_os("MILEPOST_UPDATE_DOCS").is_some() {
            std::fs::write(&path, &expected).unwrap();
        }
        assert!(page == expected, "docs/ERRORS.md differs; run this test with MILEPOST_UPDATE_DOCS=1");
    }
}
