-- Deletes a sign-in with a provider and returns it, unless it is old. $1 id, $2 state, $3 age in ms from which it is old
with ended as (
    delete from milepost.console_sign_in where id = $1::bytea and state = $2::bytea
    returning nonce, verifier, next, began_at
)
select nonce, verifier, next, now() as at from ended where began_at > now() - $3::bigint * interval '1 millisecond'
