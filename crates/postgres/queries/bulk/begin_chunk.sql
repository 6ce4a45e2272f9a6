-- Begins a transaction with the users' own statements, in one message: commits durably; plans anew with the values at
-- hand, by indexes wherever there are some, whatever ANALYZE last saw; checks constraints at once, so that it is known
-- whose target breaks one; and lets the server end it when its process has stopped in the middle, within a lease.
begin;
select set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
       set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('idle_in_transaction_session_timeout', '5s', true),
       set_config('tcp_user_timeout', '10s', true),
       case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', true) end;
set constraints all immediate
