-- Records that the message of claim $2 to target $1 was delivered.
update milepost.alert_target
set claimed_until = null, next_at = null, sent_at = clock_timestamp(),
    failing_since = null, failures = 0, last_error = null
where name = $1::text and claim = $2::bigint and claimed_until is not null
