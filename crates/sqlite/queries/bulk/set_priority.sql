-- Sets the priority of job ?1 to ?2 while it is live.
UPDATE milepost_live SET priority = ?2 WHERE id = ?1
