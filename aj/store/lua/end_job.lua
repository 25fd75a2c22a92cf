-- Writes the end of a job: status, outcome, tombstone, index, and the webhook in the outbox.
-- KEYS  1 job hash  2 leases of running jobs  3 tombstone  4 delivery hash  5 hosts with work
--       6 due deliveries of the host  7 pending deliveries
-- ARGV  1 execution id  2 job id  3 '1' to end it only if its lease is over  4 status  5 outcome  6 ended at, ms
--       7 life of the result, s  8 life of the tombstone, s  9 webhook body ('' for none)  10 host
--       11 first attempt due at, ms  12 news channel  13 how long it ran, two bytes ('' where that tells nothing)
--       14 how it ended, in a word  15 count n of the words of RQ's commands  16 .. 15+n these words
local function owe_webhook(job_key, url, traceparent, now)
    redis.call('HSET', job_key, 'callback_state', 'pending', 'callback_attempts', 0, 'callback_next_ms', ARGV[11])
    redis.call('HSET', KEYS[4], 'url', url, 'host', ARGV[10], 'body', ARGV[9], 'attempts', 0)
    if traceparent then
        redis.call('HSET', KEYS[4], 'traceparent', traceparent)
    end
    redis.call('ZADD', KEYS[6], ARGV[11], ARGV[2])
    redis.call('ZADD', KEYS[5], 'LT', ARGV[11], ARGV[10])
    redis.call('ZADD', KEYS[7], now, ARGV[2])
    redis.call('PUBLISH', ARGV[12], ARGV[2])
end

local function end_job(now)
    local expires_ms = string.format('%d', tonumber(ARGV[6]) + tonumber(ARGV[7]) * 1000)
    local job = redis.call(
        'HMGET', KEYS[1], 'owner', 'key_until_ms', 'task', 'queue', 'started_ms', 'callback_url', 'traceparent')
    local owner, task = job[1] or '', job[3]
    redis.call(
        'HSET', KEYS[1], 'status', ARGV[4], 'outcome', ARGV[5], 'ended_ms', ARGV[6], 'expires_ms', expires_ms,
        'execution', mark_of(ARGV[1]))
    redis.call('EXPIRE', KEYS[1], ARGV[7])
    -- While its idempotency key lives, a replay names this job: its id must not become unknown before.
    local tombstone_ms = math.max(tonumber(ARGV[8]) * 1000, tonumber(job[2] or 0) - now)
    redis.call('SET', KEYS[3], tombstone_of(expires_ms, owner), 'PX', tombstone_ms)
    redis.call('ZREM', KEYS[2], ARGV[2])
    list_ended(KEYS[1], ARGV[2], owner, ARGV[4], now, ARGV[7])
    if ARGV[9] ~= '' then
        owe_webhook(KEYS[1], job[6], job[7], now)
    end
    note_length(KEYS[1], task, job[4], ARGV[13])
    count(KEYS[1], 'ended ' .. ARGV[14] .. ' ' .. task)
    tally(KEYS[1], ARGV[4], now)
    if ARGV[13] ~= '' then
        observe(KEYS[1], 'run', task, ARGV[6] - job[5])
    end
    -- What was for its run goes: it would be a third of what the job takes from now on.
    redis.call('HDEL', KEYS[1], 'queue', 'number', 'known', 'queued_ms', 'stop')
    run_commands(16, 15 + ARGV[15])
    tell_change(KEYS[1], ' ended')
end
