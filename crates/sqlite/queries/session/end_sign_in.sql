-- Deletes a sign-in with a provider and returns it. ?1 id, ?2 state
DELETE FROM milepost_console_sign_in WHERE id = ?1 AND state = ?2 RETURNING nonce, verifier, next, began_at_ms
