-- Remembers that a token was used, unless that was within the last minute. $1 its prefix
update milepost.access_token set last_used_at = now()
where prefix = $1::text and (last_used_at is null or last_used_at < now() - interval '1 minute')
