-- A worker takes a job: queued becomes running, together with RQ's own bookkeeping, or nothing happens.
-- A job that waits for its next attempt is not to be had before its delay is over, whatever stands in the queue.
-- KEYS  1 job hash  2 leases of running jobs  3 delayed jobs
-- ARGV  1 execution id  2 job id  3 lease, ms  then RQ's commands
-- Returns {now in ms, field, value, ...} of the job hash, or false where the job is not there to be taken
local job = redis.call('HMGET', KEYS[1], 'status', 'execution')
local now = now_ms()
local is_delayed = redis.call('ZSCORE', KEYS[3], ARGV[2])
if job[1] == 'queued' and job[2] ~= ARGV[1] and not is_delayed then
    redis.call('HINCRBY', KEYS[1], 'attempt', 1)
    redis.call('HSET', KEYS[1], 'status', 'running', 'execution', ARGV[1], 'started_ms', now)
    redis.call('ZADD', KEYS[2], now + tonumber(ARGV[3]), ARGV[2])
    run_commands(4)
    note_start(KEYS[1])
    local times = redis.call('HMGET', KEYS[1], 'queued_ms', 'created_ms', 'task')
    observe(KEYS[1], 'wait', times[3], now - tonumber(times[1] or times[2]))
    tell_change(KEYS[1])
elseif job[1] == 'running' and job[2] == ARGV[1] then
    -- Its answer was lost, perhaps long ago; the lease counts from the one that arrives.
    redis.call('ZADD', KEYS[2], now + tonumber(ARGV[3]), ARGV[2])
else
    return false
end
local reply = redis.call('HGETALL', KEYS[1])
table.insert(reply, 1, now)
return reply
