-- A job ends: the final status with its outcome, the tombstone, the webhook in the outbox and RQ's own
-- bookkeeping, or nothing. A final status never changes, and only the execution that runs may end a job.
-- KEYS  1 job hash  2 leases of running jobs  3 active jobs  4 tombstone  5 delivery hash  6 hosts with work
--       7 due deliveries of the host
-- ARGV  1 execution id  2 job id  3 '1' to end it only if its lease is over  4 status  5 outcome  6 ended at, ms
--       7 life of the result, s  8 life of the tombstone, s  9 webhook body ('' for none)  10 host
--       11 first attempt due at, ms  12 news channel  then RQ's commands
-- Returns 'yes', 'done' where this execution has ended it before, or 'fenced'
local verdict = may_end(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3])
if verdict == 'done' then
    -- Somebody else may have ended it in this execution's name, since its lease was over: that is no repeat.
    local ended = redis.call('HMGET', KEYS[1], 'status', 'outcome')
    return ended[1] == ARGV[4] and ended[2] == ARGV[5] and 'done' or 'fenced'
end
if verdict ~= 'yes' then
    return verdict
end
local expires_ms = string.format('%d', tonumber(ARGV[6]) + tonumber(ARGV[7]) * 1000)
redis.call('HSET', KEYS[1], 'status', ARGV[4], 'outcome', ARGV[5], 'ended_ms', ARGV[6], 'expires_ms', expires_ms)
redis.call('EXPIRE', KEYS[1], ARGV[7])
-- While its idempotency key lives, a replay names this job: its id must not become unknown before.
local tombstone_ms = tonumber(ARGV[8]) * 1000
local key_until_ms = tonumber(redis.call('HGET', KEYS[1], 'key_until_ms') or 0)
redis.call('SET', KEYS[4], expires_ms, 'PX', math.max(tombstone_ms, key_until_ms - now_ms()))
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('ZREM', KEYS[3], ARGV[2])
if ARGV[9] ~= '' then
    redis.call('HSET', KEYS[1], 'callback_state', 'pending', 'callback_attempts', 0, 'callback_next_ms', ARGV[11])
    redis.call('HSET', KEYS[5], 'url', redis.call('HGET', KEYS[1], 'callback_url'), 'host', ARGV[10])
    redis.call('HSET', KEYS[5], 'body', ARGV[9], 'attempts', 0)
    redis.call('ZADD', KEYS[7], ARGV[11], ARGV[2])
    redis.call('ZADD', KEYS[6], 'LT', ARGV[11], ARGV[10])
    redis.call('PUBLISH', ARGV[12], ARGV[2])
end
run_commands(13)
return 'yes'
