-- Updates the planner's statistics about the imported rows.
analyze milepost.job, milepost.job_key, milepost.live, milepost.ended, milepost.history, milepost.progress,
        milepost.worker, milepost.group_slot, milepost.bulk, milepost.bulk_setting, milepost.bulk_failure,
        milepost.bulk_file, milepost.bulk_target, milepost.dag_task, milepost.batch, milepost.batch_input, milepost.batch_task,
        milepost.batch_spread, milepost.batch_history, milepost.batch_wait, milepost.batch_signal, milepost.aggregate, milepost.event, milepost.processed_event, milepost.aggregate_checkpoint,
        milepost.inbox_parked, milepost.inbox_dead, milepost.parked_aggregate, milepost.parked_event, milepost.dead_event, milepost.event_work
