-- A job is taken that no worker's desk takes: queued becomes running, together with RQ's commands, or nothing happens.
-- KEYS  1 job hash  2 leases of running jobs  3 delayed jobs
-- ARGV  1 execution id  2 job id  3 lease, ms  then RQ's commands
-- Returns {now in ms, field, value, ...} of the job hash, or false where the job is not there to be taken
local job = redis.call('HMGET', KEYS[1], unpack(STARTS_FROM))
local now = now_ms()
if may_start(job, ARGV[2], ARGV[1], KEYS[3]) then
    start_job(KEYS[1], ARGV[2], job, ARGV[1], now, KEYS[2], ARGV[3])
    run_commands(4)
elseif job[1] == 'running' and job[2] == ARGV[1] then
    -- Its answer was lost, perhaps long ago; the lease counts from the one that arrives.
    redis.call('ZADD', KEYS[2], now + tonumber(ARGV[3]), ARGV[2])
else
    return false
end
local reply = redis.call('HGETALL', KEYS[1])
table.insert(reply, 1, now)
return reply
