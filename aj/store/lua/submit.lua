-- Accepts one submission: the job's hash, its idempotency record, RQ's job and queue entry, or none of them.
-- KEYS  1 job hash  2 RQ's queue list  3 RQ's registry of what runs in the queue  4 delayed jobs
--       5 RQ's set of the queue's workers  6 quota of the caller  7 idempotency record (absent without a key)
-- ARGV  1 job id  2 fingerprint of the payload  3 life of the idempotency record, s
--       4 most entries that may wait  5 latest time at which to accept, ms (0 for none)
--       6 jobs that the caller may submit at once (0 for no limit)  7 seconds in which that many more may come
--       8 count n of the words of the job hash  9 .. 8+n field, value, ...
--       then RQ's commands, the queue push last
-- Returns {'created' | 'replayed' | 'mismatch' | 'limited' | 'full' | 'late', job id, now in ms, what quota gives,
--          what outlook gives if created}
-- A job that is not created uses nothing of the quota: who asks again for an answer that was lost is answered.
-- Late is what the store received and did not read for so long that its sender has given up.
local words, now = tonumber(ARGV[8]), now_ms()
local at_once, window_s = tonumber(ARGV[6]), tonumber(ARGV[7])
local left = quota(KEYS[6], at_once, window_s)
local known = KEYS[7] and redis.call('HMGET', KEYS[7], 'job', 'fingerprint') or {false, false}
if known[1] and known[1] ~= ARGV[1] then
    if known[2] ~= ARGV[2] then
        return {'mismatch', known[1], now, left}
    end
    count(KEYS[1], 'submissions replayed')
    return {'replayed', known[1], now, left}
end
-- The same id again is the same command sent twice by the client library, whose first reply was lost.
if known[1] or redis.call('EXISTS', KEYS[1]) == 1 then
    return {'created', ARGV[1], now, left}
end
if tonumber(ARGV[5]) > 0 and now > tonumber(ARGV[5]) then
    return {'late', '', now, left}
end
if left[1] == 0 then
    return {'limited', '', now, left}
end
if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[4]) then
    return {'full', '', now, left}
end
redis.call('HSET', KEYS[1], 'created_ms', now, unpack(ARGV, 9, 8 + words))
list_active(KEYS[1], ARGV[1])
if KEYS[7] then
    redis.call('HSET', KEYS[7], 'job', ARGV[1], 'fingerprint', ARGV[2])
    redis.call('EXPIRE', KEYS[7], ARGV[3])
    redis.call('HSET', KEYS[1], 'key_until_ms', now + tonumber(ARGV[3]) * 1000)
end
run_commands(9 + words)
join_line(KEYS[1])
left = quota(KEYS[6], at_once, window_s, true)
count(KEYS[1], 'submissions accepted')
redis.call('EXPIRE', metrics_key(KEYS[1]), METRICS_LIFE_S)
return {'created', ARGV[1], now, left, outlook(KEYS[1], ARGV[1], KEYS[2], KEYS[5], KEYS[3], KEYS[4])}
