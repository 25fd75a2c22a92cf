-- Accepts one submission: the job's hash, its idempotency record, RQ's job and queue entry, or none of them.
-- KEYS  1 job hash  2 RQ's queue list  3 active jobs  4 RQ's registry of what runs in the queue  5 delayed jobs
--       6 RQ's set of the queue's workers  7 idempotency record (absent without a key)
-- ARGV  1 job id  2 fingerprint of the payload  3 life of the idempotency record, s
--       4 most entries that may wait  5 latest time at which to accept, ms (0 for none)
--       6 count n of the words of the job hash  7 .. 6+n field, value, ...
--       then RQ's commands, the queue push last
-- Returns {'created' | 'replayed' | 'mismatch' | 'full' | 'late', job id, now in ms, what outlook gives if created}
-- Late is what the store received and did not read for so long that its sender has given up.
local words, now = tonumber(ARGV[6]), now_ms()
local known = KEYS[7] and redis.call('HMGET', KEYS[7], 'job', 'fingerprint') or {false, false}
if known[1] and known[1] ~= ARGV[1] then
    return {known[2] == ARGV[2] and 'replayed' or 'mismatch', known[1], now}
end
-- The same id again is the same command sent twice by the client library, whose first reply was lost.
if known[1] or redis.call('EXISTS', KEYS[1]) == 1 then
    return {'created', ARGV[1], now}
end
if tonumber(ARGV[5]) > 0 and now > tonumber(ARGV[5]) then
    return {'late', '', now}
end
if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[4]) then
    return {'full', '', now}
end
redis.call('HSET', KEYS[1], 'created_ms', now, unpack(ARGV, 7, 6 + words))
redis.call('ZADD', KEYS[3], 0, ARGV[1])
if KEYS[7] then
    redis.call('HSET', KEYS[7], 'job', ARGV[1], 'fingerprint', ARGV[2])
    redis.call('EXPIRE', KEYS[7], ARGV[3])
    redis.call('HSET', KEYS[1], 'key_until_ms', now + tonumber(ARGV[3]) * 1000)
end
run_commands(7 + words)
join_line(KEYS[1])
return {'created', ARGV[1], now, outlook(KEYS[1], ARGV[1], KEYS[2], KEYS[6], KEYS[4], KEYS[5])}
