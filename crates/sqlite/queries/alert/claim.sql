-- Claims the next message to target ?1 until ?2, and returns the number of the claim.
UPDATE milepost_alert_target SET claim = claim + 1, claimed_until_ms = ?2 WHERE name = ?1 RETURNING claim
