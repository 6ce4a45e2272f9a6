-- Begins a sign-in with a provider. ?1 id, ?2 state, ?3 nonce, ?4 PKCE verifier, ?5 path to go to, ?6 now
INSERT INTO milepost_console_sign_in (id, state, nonce, verifier, next, began_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
