-- Takes back the marks of runs, and of no others. KEYS: locks; ARGV: their tokens.
for i = 1, #KEYS do
    if redis.call('GET', KEYS[i]) == ARGV[i] then
        redis.call('DEL', KEYS[i])
    end
end
