-- Removes a schedule; only an operator can remove an operator's. Its jobs are kept. ?1 name, ?2 source
DELETE FROM milepost_schedule WHERE name = ?1 AND (source = ?2 OR ?2 = 'operator')
