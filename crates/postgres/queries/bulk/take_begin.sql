-- Begins the takeover of a run: waits up to 2 seconds for a chunk of its last worker, which operators do not notice.
begin;
select set_config('lock_timeout', '2s', true), set_config('array_nulls', 'on', true), set_config('idle_in_transaction_session_timeout', '5s', true)
