-- Returns whether any publisher of a subscription is willing to own it. ?1 subscription
SELECT EXISTS (SELECT 1 FROM milepost_publisher WHERE subscription = ?1 AND NOT stands_aside)
