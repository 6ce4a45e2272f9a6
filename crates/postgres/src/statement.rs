//! All statements, one verb per file, in a list from which a test prepares each of them against a migrated database.

use milepost_core::doctor::Check;

macro_rules! statements {
    ($($(#[$meta:meta])* $name:ident = $file:literal;)+) => {
        $($(#[$meta])* pub(crate) const $name: &str = include_str!(concat!("../queries/", $file, ".sql"));)+

        /// All statements with the names of their files.
        pub const ALL: &[(&str, &str)] = &[$(($file, $name)),+];
    };
}

/// Declares the queries of the consistency checks, one per check, in files named after the checks.
macro_rules! questions {
    ($($code:literal,)+) => {
        /// All queries with the names of their checks.
        pub const QUESTIONS: &[(&str, &str)] =
            &[$(($code, include_str!(concat!("../queries/doctor/", $code, ".sql")))),+];
    };
}

/// Returns the query of a check; `None` if this store does not have the check.
pub(crate) fn of_check(check: Check) -> Option<&'static str> {
    QUESTIONS.iter().find(|(name, _)| *name == check.as_str()).map(|(_, sql)| *sql)
}

statements! {
    BEGIN_CALM = "begin_calm";
    BEGIN_OWN = "begin_own";
    BEGIN_PINNED = "begin_pinned";
    BURY_WORKER = "bury_worker";
    CHANGE = "change";
    CHECKPOINTS = "checkpoints";
    CLAIM = "claim";
    CLEAR_WORKER = "clear_worker";
    COMPILE_NOTHING = "compile_nothing";
    COMPLETE = "complete";
    CLOCK = "clock";
    CONFIRM_REPLICATION = "confirm_replication";
    COUNT_BY_STATE = "count_by_state";
    ENDED_RUNS = "ended_runs";
    ENQUEUE_MANY = "enqueue_many";
    ENQUEUE_MANY_NOTED = "enqueue_many_noted";
    EXPIRED_WORKER = "expired_worker";
    FEED_ACTIVITY = "feed/activity";
    FEED_BATCHES = "feed/batches";
    FEED_BEHIND = "feed/behind";
    FEED_END = "feed/end";
    FEED_JOBS = "feed/jobs";
    FINISH_STOPPED = "finish_stopped";
    FINISH_SUCCEEDED = "finish_succeeded";
    FINISH_UNFINISHED = "finish_unfinished";
    FOREIGN_OBJECTS = "foreign_objects";
    FREE_GROUPS = "free_groups";
    HAND_OVER = "hand_over";
    HEARTBEAT = "heartbeat";
    HELD = "held";
    HISTORY = "history";
    JOB = "job";
    JOBS = "jobs";
    JOBS_ASIDE = "jobs_aside";
    JOBS_ENDED_ASIDE = "jobs_ended_aside";
    JOBS_OF_CALL = "jobs_of_call";
    JOBS_RUNNING = "jobs_running";
    JOBS_WITH_KEY = "jobs_with_key";
    KEY_HOLDERS = "key_holders";
    LANES = "lanes";
    LAST_CHANGES = "last_changes";
    LAST_FAILURES = "last_failures";
    LIMITS = "limits";
    LIMIT_TIME = "limit_time";
    LISTEN_ONLY = "listen_only";
    LOCK_RUNS = "lock_runs";
    LOCK_WAKE = "lock_wake";
    LOST_RUNS = "lost_runs";
    NOTE_TIMELINE = "note_timeline";
    OVERDUE_STOPS = "overdue_stops";
    PACE = "pace";
    PASS_ON = "pass_on";
    PASS_TURN = "pass_turn";
    PAUSE_QUEUE = "pause_queue";
    PAUSE_SCHEDULE = "pause_schedule";
    PEEK = "peek";
    PIN_CALM = "pin_calm";
    PIN_PLANS = "pin_plans";
    PRUNABLE = "prunable";
    PRUNE_JOBS = "prune_jobs";
    PRUNE_KEYS = "prune_keys";
    PRUNE_TARGETS = "prune_targets";
    PRUNE_WORKERS = "prune_workers";
    PUT_GROUP_LIMIT = "put_group_limit";
    PUT_KIND_LIMIT = "put_kind_limit";
    QUEUES = "queues";
    QUEUES_BY_KIND = "queues_by_kind";
    REGISTER_WORKER = "register_worker";
    REMOVE_KIND_LIMIT = "remove_kind_limit";
    REMOVE_SCHEDULE = "remove_schedule";
    REPORT = "report";
    RETIRE_WORKER = "retire_worker";
    SCHEDULES = "schedules";
    SEARCH = "search";
    SETTINGS = "settings";
    SHORTEN_HISTORY = "shorten_history";
    STOP_REQUESTS = "stop_requests";
    TAKE_TURN = "take_turn";
    TICK_BATCH = "tick_batch";
    TICK_SCHEDULE = "tick_schedule";
    UNPAUSE_SCHEDULE = "unpause_schedule";
    UNLOCK_WAKE = "unlock_wake";
    UNSEAT_WAKER = "unseat_waker";
    WAITING_GROUPS = "waiting_groups";
    WORKERS = "workers";
    WRITE_SCHEDULE = "write_schedule";
    TOKEN = "token/token";
    TOKENS = "token/tokens";
    TOKEN_CREATE = "token/create";
    TOKEN_HAS = "token/has";
    TOKEN_REVOKE = "token/revoke";
    TOKEN_TOUCH = "token/touch";
    SESSION = "session/session";
    SESSION_BEGIN = "session/begin";
    SESSION_END = "session/end";
    SESSION_ROTATE = "session/rotate";
    EMIT_MANY = "event/emit_many";
    EVENTS_AFTER = "event/after";
    EVENTS_AFTER_OF_AGGREGATE = "event/after_of_aggregate";
    EVENTS_NEWEST = "event/newest";
    EVENTS_NEWEST_OF_AGGREGATE = "event/newest_of_aggregate";
    RELAY_ADVANCE_SLOTS = "relay/advance_slots";
    RELAY_BEGIN_NOW = "relay/begin_now";
    RELAY_CHANGE_DEAD = "relay/change_dead";
    RELAY_CHANGE_PARKED = "relay/change_parked";
    RELAY_DEAD = "relay/dead";
    RELAY_DUE = "relay/due";
    RELAY_HOLD_SLOTS = "relay/hold_slots";
    RELAY_LAST_POS = "relay/last_pos";
    RELAY_LEAVE = "relay/leave";
    RELAY_NEXT_DUE = "relay/next_due";
    RELAY_PAGE = "relay/page";
    RELAY_PARKED = "relay/parked";
    RELAY_PARKED_OF = "relay/parked_of";
    RELAY_PAYLOADS = "relay/payloads";
    RELAY_PAUSE = "relay/pause";
    RELAY_PAUSE_OF = "relay/pause_of";
    RELAY_PRUNE_LOG = "relay/prune_log";
    RELAY_PUBLISHERS = "relay/publishers";
    RELAY_REMOVE = "relay/remove";
    RELAY_RENEW_PUBLISHER = "relay/renew_publisher";
    RELAY_REPLAY = "relay/replay";
    RELAY_REPORT_SINK = "relay/report_sink";
    RELAY_RESEED = "relay/reseed";
    RELAY_RESUME = "relay/resume";
    RELAY_SETTLE_PARKED = "relay/settle_parked";
    RELAY_SUBSCRIBE = "relay/subscribe";
    RELAY_SUBSCRIPTIONS = "relay/subscriptions";
    RELAY_SWITCH_RECORDING = "relay/switch_recording";
    RELAY_WANT_CHANGES = "relay/want_changes";
    INBOX_CONSUMERS = "inbox/consumers";
    INBOX_DEAD = "inbox/dead";
    INBOX_DROP = "inbox/drop";
    INBOX_EXPECT_FROM = "inbox/expect_from";
    INBOX_GAPS = "inbox/gaps";
    INBOX_GIVE_UP = "inbox/give_up";
    INBOX_NEXT_PARKED = "inbox/next_parked";
    INBOX_ONCE = "inbox/once";
    INBOX_PRUNE_DEAD = "inbox/prune_dead";
    INBOX_PRUNE_PROCESSED = "inbox/prune_processed";
    INBOX_PUT_CONSUMER = "inbox/put_consumer";
    INBOX_READY = "inbox/ready";
    INBOX_RECEIVE = "inbox/receive";
    INBOX_RETRY = "inbox/retry";
    BATCHES = "batch/batches";
    BATCH_ABORT = "batch/abort";
    BATCH_CANCEL = "batch/cancel";
    BATCH_COUNT_BATCHES = "batch/count_batches";
    BATCH_DEFINITION = "batch/definition";
    BATCH_DUE = "batch/due";
    BATCH_FINISH_SUCCEEDED = "batch/finish_succeeded";
    BATCH_GENERATION = "batch/generation";
    BATCH_HISTORY = "batch/history";
    BATCH_INPUT_IN = "batch/input_in";
    BATCH_LAST = "batch/last";
    BATCH_JOIN = "batch/join";
    BATCH_JOIN_OF_WORKER = "batch/join_of_worker";
    BATCH_JOIN_OVERDUE = "batch/join_overdue";
    BATCH_LEFT_OVER = "batch/left_over";
    BATCH_LOCK_DAG = "batch/lock_dag";
    BATCH_MARK = "batch/mark";
    BATCH_PRUNE = "batch/prune";
    BATCH_PUT_TASKS = "batch/put_tasks";
    BATCH_PUT_VERSION = "batch/put_version";
    BATCH_READS = "batch/reads";
    BATCH_RELEASE = "batch/release";
    BATCH_RELEASE_OTHER = "batch/release_other";
    BATCH_RERUN = "batch/rerun";
    BATCH_RESUME = "batch/resume";
    BATCH_SCHEMA = "batch/schema";
    BATCH_SETTLE = "batch/settle";
    BATCH_SETTLE_JOBS = "batch/settle_jobs";
    BATCH_SET_LATEST = "batch/set_latest";
    BATCH_SPREAD = "batch/spread";
    BATCH_START = "batch/start";
    BATCH_TASKS = "batch/tasks";
    BATCH_TASK_KEY = "batch/task_key";
    BATCH_VERSIONS = "batch/versions";
    BATCH_WAKE_TO_ADVANCE = "batch/wake_to_advance";
    BULK_ADVANCE = "bulk/advance";
    BULK_BEGIN_CHUNK = "bulk/begin_chunk";
    BULK_BEGIN_FILE = "bulk/begin_file";
    BULK_BEGIN_RUN = "bulk/begin_run";
    BULK_BEGIN_STAGED_RUN = "bulk/begin_staged_run";
    BULK_DEFINITIONS = "bulk/definitions";
    BULK_END = "bulk/end";
    BULK_ENTER = "bulk/enter";
    BULK_EVICT = "bulk/evict";
    BULK_FAIL = "bulk/fail";
    BULK_FAILURES = "bulk/failures";
    BULK_FAILURES_LEFT = "bulk/failures_left";
    BULK_FREEZE = "bulk/freeze";
    BULK_GIVE_FAILURES = "bulk/give_failures";
    BULK_HORIZON = "bulk/horizon";
    BULK_INTERRUPT = "bulk/interrupt";
    BULK_INTERRUPT_VISIT = "bulk/interrupt_visit";
    BULK_LARGE_TABLES = "bulk/large_tables";
    BULK_LOCK = "bulk/lock";
    BULK_KEEP_SIZE = "bulk/keep_size";
    BULK_NAMES = "bulk/names";
    BULK_NEXT_FAILURES = "bulk/next_failures";
    BULK_PUT_DEFINITION = "bulk/put_definition";
    BULK_REMOVE_DEFINITION = "bulk/remove_definition";
    BULK_REST = "bulk/rest";
    BULK_SET = "bulk/set";
    BULK_SETTINGS = "bulk/settings";
    BULK_SET_PRIORITY = "bulk/set_priority";
    BULK_STAGE = "bulk/stage";
    BULK_SINCE = "bulk/since";
    BULK_STARTS = "bulk/starts";
    BULK_TAKE = "bulk/take";
    BULK_TAKE_BEGIN = "bulk/take_begin";
    BULK_TEMPLATE = "bulk/template";
    BULK_TYPE_NAMES = "bulk/type_names";
    BULK_UNSEAT = "bulk/unseat";
    BULK_WORD = "bulk/word";
    BULKS = "bulk/bulks";
    LOCK_WAITS = "throttle/lock_waits";
    OLDEST_SNAPSHOT = "throttle/oldest_snapshot";
    REPLICA_LAG = "throttle/replica_lag";
    AUDIT_HOLD = "audit/hold";
    AUDIT_HOLD_JOB = "audit/hold_job";
    AUDIT_LOG = "audit/log";
    AUDIT_NOTE = "audit/note";
    AUDIT_PRUNE = "audit/prune";
    LOOK_AT_BATCH = "audit/look_at_batch";
    LOOK_AT_BULK = "audit/look_at_bulk";
    LOOK_AT_BULK_SETTING = "audit/look_at_bulk_setting";
    LOOK_AT_CHECKPOINT = "audit/look_at_checkpoint";
    LOOK_AT_CONSUMER = "audit/look_at_consumer";
    LOOK_AT_DAG = "audit/look_at_dag";
    LOOK_AT_DEAD_EVENT = "audit/look_at_dead_event";
    LOOK_AT_GROUP_LIMIT = "audit/look_at_group_limit";
    LOOK_AT_JOB = "audit/look_at_job";
    LOOK_AT_KIND_LIMIT = "audit/look_at_kind_limit";
    LOOK_AT_LETTERS = "audit/look_at_letters";
    LOOK_AT_PARKED = "audit/look_at_parked";
    LOOK_AT_QUEUE = "audit/look_at_queue";
    LOOK_AT_SCHEDULE = "audit/look_at_schedule";
    LOOK_AT_SUBSCRIPTION = "audit/look_at_subscription";
    ABANDONED_RUNS = "mend/abandoned_runs";
    DROP_DEAD_EVENTS = "mend/drop_dead_events";
    DROP_PARKED_AGGREGATES = "mend/drop_parked_aggregates";
    DROP_PARKED_EVENTS = "mend/drop_parked_events";
    DROP_PROGRESS = "mend/drop_progress";
    FREE_KEY = "mend/free_key";
    FREE_SLOTS = "mend/free_slots";
    DROP_BATCH_HISTORY = "mend/drop_batch_history";
    DROP_BATCH_INPUTS = "mend/drop_batch_inputs";
    DROP_BATCH_SPREADS = "mend/drop_batch_spreads";
    DROP_BATCH_TASKS = "mend/drop_batch_tasks";
    DROP_BULK = "mend/drop_bulk";
    DROP_BULK_FAILURES = "mend/drop_bulk_failures";
    DROP_BULK_FILES = "mend/drop_bulk_files";
    DROP_BULK_SETTINGS = "mend/drop_bulk_settings";
    DROP_BULK_TARGETS = "mend/drop_bulk_targets";
    DROP_ENDED = "mend/drop_ended";
    DROP_LIVE = "mend/drop_live";
    MEND_BATCH_COUNTS = "mend/batch_counts";
    MEND_TALLIES = "mend/tallies";
    MEND_TASK_STATES = "mend/task_states";
    PLACE_IN_ENDED = "mend/place_in_ended";
    PLACE_IN_LIVE = "mend/place_in_live";
    RAISE_HEADS = "mend/raise_heads";
    RAISE_TOKEN_ENDED = "mend/raise_token_ended";
    RAISE_TOKEN_LIVE = "mend/raise_token_live";
    SET_READY = "mend/set_ready";
    RETAKE_KEY = "mend/retake_key";
    RETAKE_SLOT = "mend/retake_slot";
    ANALYZE = "move/analyze";
    ARRIVAL = "move/arrival";
    ARRIVAL_PARTS = "move/arrival_parts";
    BEGIN_MOVE = "move/begin_move";
    BRING_ACCESS_TOKENS = "move/access_token";
    BRING_AGGREGATES = "move/aggregate";
    BRING_AUDIT = "move/audit";
    BRING_BATCHES = "move/batch";
    BRING_BATCH_HISTORY = "move/batch_history";
    BRING_BATCH_INPUTS = "move/batch_input";
    BRING_BATCH_SPREADS = "move/batch_spread";
    BRING_BATCH_TASKS = "move/batch_task";
    BRING_DAGS = "move/dag";
    BRING_DAG_TASKS = "move/dag_task";
    BRING_DAG_VERSIONS = "move/dag_version";
    BRING_BULK_DEFINITIONS = "move/bulk_definition";
    BRING_BULK_FAILURES = "move/bulk_failure";
    BRING_BULK_FILES = "move/bulk_file";
    BRING_BULK_SETTINGS = "move/bulk_setting";
    BRING_BULK_TARGETS = "move/bulk_target";
    BRING_BULKS = "move/bulk";
    BRING_ENDED = "move/ended";
    BRING_EVENTS = "move/event";
    BRING_GROUP_BUCKETS = "move/group_bucket";
    BRING_GROUP_LIMITS = "move/group_limit";
    BRING_HISTORY = "move/history";
    BRING_CHECKPOINTS = "move/aggregate_checkpoint";
    BRING_CONSUMERS = "move/inbox_consumer";
    BRING_INBOX_LETTERS = "move/inbox_dead";
    BRING_INBOX_TALLIES = "move/inbox_tally";
    BRING_PARKED_EVENTS = "move/inbox_parked";
    BRING_PROCESSED_EVENTS = "move/processed_event";
    BRING_SUBSCRIPTIONS = "move/subscription";
    BRING_PARKED_AGGREGATES = "move/parked_aggregate";
    BRING_HELD_EVENTS = "move/parked_event";
    BRING_DEAD_EVENTS = "move/dead_event";
    BRING_CHANGE_SOURCES = "move/change_source";
    BRING_JOBS = "move/job";
    BRING_KEYS = "move/job_key";
    BRING_KIND_LIMITS = "move/kind_limit";
    BRING_LIVE = "move/live";
    BRING_PROGRESS = "move/progress";
    BRING_QUEUES = "move/queue";
    BRING_SCHEDULES = "move/schedule";
    BRING_SLOTS = "move/group_slot";
    BRING_WORKERS = "move/worker";
    COMPLETE_MOVE = "move/complete_move";
    COUNTS = "move/counts";
    ENTER = "move/enter";
    GIVE_UP_MOVE = "move/give_up_move";
    LOCK_PART = "move/lock_part";
    REACH = "move/reach";
    STANDINGS_ENDED = "move/standings_ended";
    STANDINGS_LIVE = "move/standings_live";
}

questions! {
    "aggregate_behind",
    "aggregate_in_two_slots",
    "attempts_over",
    "autovacuum_off",
    "batch_counts_differ",
    "batch_incomplete",
    "batch_leftover",
    "bulk_cursor_beyond",
    "bulk_end_differs",
    "bulk_failures_differ",
    "bulk_leftover",
    "bulk_rows_differ",
    "bulk_token_ahead",
    "bulk_without_job",
    "clock_difference",
    "commits_unsafe",
    "dead_rows",
    "group_left_waiting",
    "group_over_limit",
    "held_event_gone",
    "history_gap",
    "history_off_graph",
    "history_without_job",
    "holder_without_slot",
    "job_in_both",
    "job_without_batch",
    "job_without_key",
    "job_without_place",
    "key_shared",
    "key_without_job",
    "live_without_job",
    "long_transaction",
    "missing_privilege",
    "nobody_publishes",
    "not_created_once",
    "parked_without_aggregate",
    "parked_without_events",
    "pre_cnt_differs",
    "progress_without_job",
    "promoted",
    "ready_at_wrong",
    "reseed_needed",
    "running_past_lease",
    "running_without_worker",
    "schedule_overdue",
    "slot_without_holder",
    "slots_missing",
    "state_differs",
    "stop_overdue",
    "task_left_due",
    "task_state_differs",
    "token_differs",
    "token_off",
    "two_ends",
    "vacuum_held_back",
    "waits_by_wrong_clock",
    "weak_durability",
    "worker_unburied",
}
