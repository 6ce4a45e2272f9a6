-- Dead letters. ?1 ids, as a JSON list
SELECT json_group_array(json_object(
    'letter', pos, 'consumer', consumer, 'aggregate_type', aggregate_type, 'aggregate_id', aggregate_id,
    'aggregate_seq', aggregate_seq, 'reason', reason,
    'event_id', substr(id, 1, 8) || '-' || substr(id, 9, 4) || '-' || substr(id, 13, 4) || '-' || substr(id, 17, 4) || '-' || substr(id, 21)))
FROM (SELECT *, iif(event_id IS NULL, NULL, lower(hex(event_id))) AS id FROM milepost_inbox_dead
      WHERE pos IN (SELECT value FROM json_each(?1)) ORDER BY pos)
