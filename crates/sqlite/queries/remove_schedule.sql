-- Removes a schedule; its jobs stay. ?1 name
DELETE FROM schedule WHERE name = ?1
