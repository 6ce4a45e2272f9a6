-- Settings of a session that listens and notifies: its commits need not be durable, and it ends while it is idle only if its client is gone without a word.
select set_config('synchronous_commit', 'off', false), set_config('idle_session_timeout', '0', false),
       set_config('tcp_keepalives_idle', '20s', false), set_config('tcp_keepalives_interval', '5s', false), set_config('tcp_keepalives_count', '3', false)
