//! Every statement, one verb a file. Listed, so that a test can prepare each against a migrated database.

macro_rules! statements {
    ($($(#[$meta:meta])* $name:ident = $file:literal;)+) => {
        $($(#[$meta])* pub(crate) const $name: &str = include_str!(concat!("../queries/", $file, ".sql"));)+

        /// Every statement with its file's name.
        pub const ALL: &[(&str, &str)] = &[$(($file, $name)),+];
    };
}

statements! {
    BEGIN_PINNED = "begin_pinned";
    BURY_WORKER = "bury_worker";
    CHANGE = "change";
    CHECKPOINT = "checkpoint";
    CLAIM = "claim";
    CLEAR_WORKER = "clear_worker";
    COMPLETE = "complete";
    CLOCK = "clock";
    COUNT_BY_STATE = "count_by_state";
    ELECT_WAKER = "elect_waker";
    ENDED_RUNS = "ended_runs";
    ENQUEUE_MANY = "enqueue_many";
    EXPIRED_WORKER = "expired_worker";
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
    LANES = "lanes";
    LIMITS = "limits";
    LOCK_RUNS = "lock_runs";
    LOST_RUNS = "lost_runs";
    OVERDUE_STOPS = "overdue_stops";
    PACE = "pace";
    PASS_ON = "pass_on";
    PASS_TURN = "pass_turn";
    PAUSE_QUEUE = "pause_queue";
    PAUSE_SCHEDULE = "pause_schedule";
    PEEK = "peek";
    PIN_PLANS = "pin_plans";
    PRUNABLE = "prunable";
    PRUNE_ENDED = "prune_ended";
    PRUNE_FAILED = "prune_failed";
    PRUNE_KEYS = "prune_keys";
    PRUNE_WORKERS = "prune_workers";
    PUT_GROUP_LIMIT = "put_group_limit";
    PUT_KIND_LIMIT = "put_kind_limit";
    QUEUES = "queues";
    REGISTER_WORKER = "register_worker";
    REMOVE_KIND_LIMIT = "remove_kind_limit";
    REMOVE_SCHEDULE = "remove_schedule";
    REPORT = "report";
    RETIRE_WORKER = "retire_worker";
    RISE = "rise";
    SCHEDULES = "schedules";
    SETTINGS = "settings";
    SHORTEN_HISTORY = "shorten_history";
    SLEEP = "sleep";
    STOP_REQUESTS = "stop_requests";
    TAKE_TURN = "take_turn";
    TICK_SCHEDULE = "tick_schedule";
    UNPAUSE_SCHEDULE = "unpause_schedule";
    UNSEAT_WAKER = "unseat_waker";
    WAITING_GROUPS = "waiting_groups";
    WORKERS = "workers";
    WRITE_SCHEDULE = "write_schedule";
}
