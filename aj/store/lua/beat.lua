-- A worker's sign of life: the lease of its running job starts anew, in RQ's books as well. One that comes after
-- the end of the job writes nothing, so that it leaves nothing behind.
-- KEYS  1 job hash  2 leases of running jobs
-- ARGV  1 execution id  2 job id  3 lease, ms  then RQ's commands
-- Returns 1, 2 where somebody asks to stop it, or 0 where the job is not this execution's any more
local job = redis.call('HMGET', KEYS[1], 'status', 'execution', 'stop')
if job[1] ~= 'running' or job[2] ~= ARGV[1] then
    return 0
end
redis.call('ZADD', KEYS[2], now_ms() + tonumber(ARGV[3]), ARGV[2])
run_commands(4)
return job[3] and 2 or 1
