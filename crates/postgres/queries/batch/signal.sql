-- Sends a signal whose payload was checked: $1 batch, $2 name, $3 payload (JSON text), $4 id.
select milepost.signal($1, $2, $3::text::jsonb, $4, true)
