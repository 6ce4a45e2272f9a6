-- Lets no statement of this transaction take longer than $1.
select set_config('statement_timeout', $1, true)
