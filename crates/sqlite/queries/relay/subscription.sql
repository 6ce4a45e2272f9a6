-- Returns the position and the owner of a subscription. ?1 its name
SELECT paused_why, owner, token, lease_until_ms, pos FROM milepost_subscription WHERE name = ?1
