-- Returns the statements that reject every change to Milepost's tables, also on connections of applications.
-- ?1 the error message
WITH own (name) AS (VALUES
    ('milepost_job'), ('milepost_job_key'), ('milepost_live'), ('milepost_ended'),
    ('milepost_history'), ('milepost_progress'), ('milepost_worker'), ('milepost_queue'),
    ('milepost_group_slot'), ('milepost_schedule'), ('milepost_kind_limit'), ('milepost_group_limit'),
    ('milepost_group_bucket'), ('milepost_retention'), ('milepost_retention_setting'), ('milepost_turn'), ('milepost_rollup'), ('milepost_rollup_position'), ('milepost_audit'),
    ('milepost_bulk_definition'), ('milepost_bulk'), ('milepost_bulk_setting'), ('milepost_bulk_failure'),
    ('milepost_bulk_file'), ('milepost_bulk_target'),
    ('milepost_dag_version'), ('milepost_dag'), ('milepost_dag_task'), ('milepost_batch'), ('milepost_batch_input'),
    ('milepost_batch_task'), ('milepost_batch_spread'), ('milepost_batch_history'), ('milepost_batch_wait'), ('milepost_batch_signal'),
    ('milepost_aggregate'), ('milepost_event'),
    ('milepost_inbox_consumer'), ('milepost_processed_event'), ('milepost_aggregate_checkpoint'), ('milepost_inbox_parked'),
    ('milepost_inbox_dead'), ('milepost_inbox_tally'),
    ('milepost_subscription'), ('milepost_publisher'), ('milepost_parked_aggregate'), ('milepost_parked_event'), ('milepost_dead_event'),
    ('milepost_log_prune'), ('milepost_change_source'), ('milepost_access_token'), ('milepost_console_session'),
    ('milepost_alert_incident'), ('milepost_alert_notice'), ('milepost_alert_silence'), ('milepost_alert_target'),
    ('milepost_console_sign_in'), ('milepost_event_work')
),
change (verb) AS (VALUES ('INSERT'), ('UPDATE'), ('DELETE'))
SELECT printf('CREATE TRIGGER %s_departed_%s BEFORE %s ON %s BEGIN SELECT RAISE(ABORT, %Q); END',
              name, lower(verb), verb, name, ?1)
FROM own CROSS JOIN change
