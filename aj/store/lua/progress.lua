-- Keeps a report of progress, from the execution that runs and from no other.
-- KEYS  1 job hash
-- ARGV  1 execution id  2 progress as JSON
local job = redis.call('HMGET', KEYS[1], 'status', 'execution')
if job[1] == 'running' and job[2] == ARGV[1] then
    redis.call('HSET', KEYS[1], 'progress', ARGV[2])
    tell_change(KEYS[1])
end
