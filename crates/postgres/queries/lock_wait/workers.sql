-- Workers' sessions: how long a statement waits for a lock. Long enough for the transactions of Milepost itself; see lock_wait.rs.
set lock_timeout = '1s'
