-- Marks dead letters before a sequence as late: they can no longer follow. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the
-- sequence
UPDATE milepost_inbox_dead SET reason = 'late', why = printf('the consumer was set to begin at sequence %d', ?4)
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND aggregate_seq < ?4 AND event_id IS NOT NULL AND reason = 'gap'
