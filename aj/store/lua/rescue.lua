-- A job that was taken from the queue and not started goes back to the head; any other entry is only removed.
-- KEYS  1 job hash  2 RQ's queue list  3 RQ's intermediate list
-- ARGV  1 job id
-- Returns 1 where the job is back in the queue, else 0
if redis.call('LREM', KEYS[3], 1, ARGV[1]) == 0 or redis.call('HGET', KEYS[1], 'status') ~= 'queued' then
    return 0
end
redis.call('LPUSH', KEYS[2], ARGV[1])
return 1
