-- An attempt failed and the task has another: running becomes queued again, with RQ's own bookkeeping.
-- KEYS  1 job hash  2 leases of running jobs  3 delayed jobs
-- ARGV  1 execution id  2 job id  3 '1' to do it only if the lease is over  4 delay, ms
--       then RQ's commands, which push the job into its queue where there is no delay
-- Returns 'yes', 'done' where this execution has done it before, or 'fenced'
local verdict = may_end(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], now_ms())
if verdict == 'done' and redis.call('HGET', KEYS[1], 'status') ~= 'queued' then
    return 'fenced'
end
if verdict ~= 'yes' then
    return verdict
end
redis.call('HSET', KEYS[1], 'status', 'queued')
count(KEYS[1], 'retried ' .. redis.call('HGET', KEYS[1], 'task'))
redis.call('HDEL', KEYS[1], 'started_ms', 'progress')
redis.call('ZREM', KEYS[2], ARGV[2])
if tonumber(ARGV[4]) > 0 then
    redis.call('ZADD', KEYS[3], now_ms() + tonumber(ARGV[4]), ARGV[2])
    redis.call('HDEL', KEYS[1], 'number')
else
    rejoin_line(KEYS[1])
end
run_commands(5)
tell_change(KEYS[1])
return 'yes'
