-- Accepts one submission: the job's hash, its idempotency record, RQ's job and queue entry, or none of them.
-- KEYS  1 job hash  2 RQ's queue list  3 RQ's registry of what runs in the queue  4 delayed jobs
--       5 RQ's set of the queue's workers  6 quota of the caller  7 idempotency record (absent without a key)
-- ARGV  1 job id  2 fingerprint of the payload  3 life of the idempotency record, s
--       4 most entries that may wait  5 latest time at which to accept, ms (0 for none)
--       6 jobs that the caller may submit at once (0 for no limit)  7 seconds in which that many more may come
--       8 owner ('' where callers are not told apart)  9 queue  10 task
--       11 RQ's commands as JSON, the queue push last; a number in them stands for that word of ARGV, such as
--       12 RQ's key of the job  13 its payload for RQ  14 the time as RQ writes it
--       15 .. field, value, ... of the job hash
-- Returns {'created' | 'replayed' | 'mismatch' | 'limited' | 'full' | 'late', job id, now in ms, what quota gives,
--          what outlook gives if created}
-- A job that is not created uses nothing of the quota: who asks again for an answer that was lost is answered.
-- Late is what the store received and did not read for so long that its sender has given up.
local now, owner, queue, task = now_ms(), ARGV[8], ARGV[9], ARGV[10]
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
local number, known = number_in_line(KEYS[1], queue), known_runs(KEYS[1], task)
redis.call(
    'HSET', KEYS[1], 'status', 'queued', 'task', task, 'queue', queue, 'created_ms', now, 'number', number,
    'known', known, unpack(ARGV, 15)
)
list_active(KEYS[1], ARGV[1], owner)
if KEYS[7] then
    redis.call('HSET', KEYS[7], 'job', ARGV[1], 'fingerprint', ARGV[2])
    redis.call('EXPIRE', KEYS[7], ARGV[3])
    redis.call('HSET', KEYS[1], 'key_until_ms', now + tonumber(ARGV[3]) * 1000)
end
for _, command in ipairs(cjson.decode(ARGV[11])) do
    for at, word in ipairs(command) do
        command[at] = type(word) == 'number' and ARGV[word] or word
    end
    redis.call(unpack(command))
end
left = quota(KEYS[6], at_once, window_s, true)
count(KEYS[1], 'submissions accepted')
redis.call('EXPIRE', metrics_key(KEYS[1]), METRICS_LIFE_S)
local job = {'queued', queue, number, task, known}
return {'created', ARGV[1], now, left, outlook(KEYS[1], ARGV[1], job, KEYS[2], KEYS[5], KEYS[3], KEYS[4])}
