-- Deletes a publisher. ?1 its id
DELETE FROM milepost_publisher WHERE id = ?1
