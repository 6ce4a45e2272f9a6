-- Marks jobs with the tokens of their runs. KEYS: lock, stop flag, lock, stop flag, …; ARGV: ttl in ms, token, token, …
-- The mark of a newer run is kept. Returns the number of jobs that were asked to stop.
local flagged = 0
for i = 1, #KEYS, 2 do
    local token = ARGV[(i + 3) / 2]
    local held = tonumber(redis.call('GET', KEYS[i]) or '')
    if not held or held <= tonumber(token) then
        redis.call('SET', KEYS[i], token, 'PX', ARGV[1])
    end
    flagged = flagged + redis.call('EXISTS', KEYS[i + 1])
end
return flagged
