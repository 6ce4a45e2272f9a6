-- Returns the settings of a consumer that differ from the defaults. ?1 the consumer
SELECT gap_wait_ms, parked_max, gap_policy, begins_anywhere FROM milepost_inbox_consumer WHERE consumer = ?1
