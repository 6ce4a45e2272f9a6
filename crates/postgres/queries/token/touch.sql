-- Records that a token was used, unless that happened within the last minute. $1 its prefix
select milepost.touch_token($1::text)
