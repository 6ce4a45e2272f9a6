-- A repeated verb, while few statements wait for locks: its place in the queue of a lock that is always in use is lost when it stops waiting.
set local lock_timeout = '1s'
