-- Remembers that a token was used, unless that was within the last minute. $1 its prefix
select milepost.touch_token($1::text)
