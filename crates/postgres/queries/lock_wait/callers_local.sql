-- callers.sql for one transaction.
set local lock_timeout = '100ms'
