-- Deletes an ended job from live. ?1 job
DELETE FROM milepost_live WHERE id = ?1
