-- Removes a schedule, an operator's only for an operator; its jobs stay. ?1 name, ?2 who says so
DELETE FROM milepost_schedule WHERE name = ?1 AND (source = ?2 OR ?2 = 'operator')
