-- Deletes a subscription. ?1 its name
DELETE FROM milepost_subscription WHERE name = ?1
