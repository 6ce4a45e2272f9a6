-- Sets the time limit of the statements in this transaction to $1.
select set_config('statement_timeout', $1, true)
