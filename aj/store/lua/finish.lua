-- A job ends: the final status with its outcome, the tombstone, the webhook in the outbox and RQ's own
-- bookkeeping, or nothing. A final status never changes, and only the execution that runs may end a job.
-- KEYS  1 job hash  2 tombstone  3 delivery hash  4 hosts with work  5 due deliveries of the endpoint
-- ARGV  1 execution id  2 status  3 outcome  4 ended at, ms  5 life of the result, s  6 life of the tombstone, s
--       7 webhook body ('' for none)  8 endpoint  9 first attempt due at, ms  10 job id  11 news channel
--       then RQ's commands
-- Returns 'applied', also where this execution has ended the job before, or 'fenced'
local job = redis.call('HMGET', KEYS[1], 'status', 'execution', 'callback_url')
if job[2] ~= ARGV[1] or job[1] == 'queued' then
    return 'fenced'
end
if job[1] ~= 'running' then
    return 'applied'
end
local expires_ms = string.format('%d', tonumber(ARGV[4]) + tonumber(ARGV[5]) * 1000)
redis.call('HSET', KEYS[1], 'status', ARGV[2], 'outcome', ARGV[3], 'ended_ms', ARGV[4], 'expires_ms', expires_ms)
redis.call('EXPIRE', KEYS[1], ARGV[5])
redis.call('SET', KEYS[2], expires_ms, 'EX', ARGV[6])
if ARGV[7] ~= '' then
    redis.call('HSET', KEYS[1], 'callback_state', 'pending', 'callback_attempts', 0, 'callback_next_ms', ARGV[9])
    redis.call('HSET', KEYS[3], 'url', job[3], 'endpoint', ARGV[8], 'body', ARGV[7], 'attempts', 0)
    redis.call('ZADD', KEYS[5], ARGV[9], ARGV[10])
    redis.call('ZADD', KEYS[4], 'LT', ARGV[9], ARGV[8])
    redis.call('PUBLISH', ARGV[11], ARGV[10])
end
run_commands(12)
return 'applied'
