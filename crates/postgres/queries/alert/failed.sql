-- Records that the message of claim $2 to target $1 was not delivered: $3 ms until the next attempt, $4 the error.
update milepost.alert_target
set claimed_until = null, next_at = now() + $3::bigint * interval '1 millisecond',
    failing_since = coalesce(failing_since, now()), failures = least(failures, 1000000) + 1, last_error = $4::text
where name = $1::text and claim = $2::bigint and claimed_until is not null
