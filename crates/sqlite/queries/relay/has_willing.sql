-- Whether a publisher of a subscription does not stand aside. ?1 subscription
SELECT EXISTS (SELECT 1 FROM milepost_publisher WHERE subscription = ?1 AND NOT stands_aside)
