-- Deletes the marks of these runs, but not of other runs. KEYS: locks; ARGV: the tokens of the runs.
for i = 1, #KEYS do
    if redis.call('GET', KEYS[i]) == ARGV[i] then
        redis.call('DEL', KEYS[i])
    end
end
