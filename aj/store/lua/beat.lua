-- A worker's sign of life: the lease of its running job starts anew.
-- KEYS  1 job hash  2 leases of running jobs
-- ARGV  1 execution id  2 job id  3 lease, ms
-- Returns 1, or 0 where the job is not this execution's any more
local job = redis.call('HMGET', KEYS[1], 'status', 'execution')
if job[1] ~= 'running' or job[2] ~= ARGV[1] then
    return 0
end
redis.call('ZADD', KEYS[2], now_ms() + tonumber(ARGV[3]), ARGV[2])
return 1
