-- Begins taking a run over: waits for a chunk of its last worker only so long that operators do not notice.
begin;
select set_config('lock_timeout', '2s', true), set_config('idle_in_transaction_session_timeout', '5s', true)
