-- Sessions of callers and operators: how long a statement waits for a lock. Short, because requests of all callers share a few connections; see lock_wait.rs.
set lock_timeout = '100ms'
