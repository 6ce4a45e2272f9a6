-- Settings of a session that listens and notifies: its commits need not be durable, and it does not end while it is idle.
select set_config('synchronous_commit', 'off', false), set_config('idle_session_timeout', '0', false)
