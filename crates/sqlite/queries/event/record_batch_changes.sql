-- Turns every state change of a batch whose DAG a subscription requests into an event, on any connection.
CREATE TRIGGER IF NOT EXISTS milepost_batch_history_recording AFTER INSERT ON milepost_batch_history
WHEN EXISTS (SELECT 1 FROM milepost_change_source
             WHERE what = 'dag' AND name = (SELECT dag FROM milepost_batch WHERE id = NEW.batch_id))
BEGIN
    -- If the row was deleted with an earlier batch of the same id, numbering continues after the events in the log.
    INSERT INTO milepost_aggregate (aggregate_type, aggregate_id, last_seq)
    SELECT c.aggregate_type, c.aggregate_id,
           1 + coalesce((SELECT max(e.aggregate_seq) FROM milepost_event e
                         WHERE e.aggregate_type = c.aggregate_type AND e.aggregate_id = c.aggregate_id), 0)
    FROM milepost_batch_change c WHERE c.pos = NEW.pos
    ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE SET last_seq = last_seq + 1;
    -- Its id is a new UUIDv7.
    INSERT INTO milepost_event (event_id, aggregate_type, aggregate_id, aggregate_seq, emitted_at_ms, event_type, payload)
    SELECT unhex(printf('%012x7%03x%x%015x', c.at_ms, random() & 4095, 8 + (random() & 3), random() & 1152921504606846975)),
           c.aggregate_type, c.aggregate_id, a.last_seq, c.at_ms, c.event_type, c.payload
    FROM milepost_batch_change c
    CROSS JOIN milepost_aggregate a ON a.aggregate_type = c.aggregate_type AND a.aggregate_id = c.aggregate_id
    WHERE c.pos = NEW.pos;
END
