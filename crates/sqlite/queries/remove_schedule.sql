-- Removes a schedule; its jobs stay. ?1 name
DELETE FROM milepost_schedule WHERE name = ?1
