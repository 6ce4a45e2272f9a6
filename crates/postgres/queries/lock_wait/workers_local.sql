-- workers.sql for one transaction.
set local lock_timeout = '1s'
