-- Deletes a dead letter. ?1 its id
DELETE FROM milepost_inbox_dead WHERE pos = ?1
