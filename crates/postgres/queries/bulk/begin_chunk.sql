-- Begins a transaction for users' own statements, in one message: commits durably; plans with the current values, by indexes
-- wherever possible, regardless of the last ANALYZE; checks constraints immediately, so that the violating target is known; reads
-- NULL in the text of a key that is an array;
-- and lets the server end the transaction, well within a lease, if its process hangs.
begin;
select set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
       set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('idle_in_transaction_session_timeout', '5s', true),
       set_config('tcp_user_timeout', '10s', true), set_config('array_nulls', 'on', true),
       case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', true) end;
set constraints all immediate
