-- The targets of alerts.
select name, seen_at, sent_at, failing_since, failures, last_error, next_at from milepost.alert_target order by name
