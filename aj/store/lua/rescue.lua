-- A job that was taken from the queue and not started goes back to the head; what is no job is only removed.
-- An entry that has an RQ job and no hash of ours is another deployment's, which shares the queue: it stays.
-- Where our own key of the job is of another type it is no job either.
-- KEYS  1 job hash  2 RQ's queue list  3 RQ's intermediate list  4 RQ's job
-- ARGV  1 job id
-- Returns 1 where the job is back in the queue, else 0
local status = redis.pcall('HGET', KEYS[1], 'status')
if not status and redis.call('EXISTS', KEYS[4]) == 1 then
    return 0
end
if redis.call('LREM', KEYS[3], 1, ARGV[1]) == 0 or status ~= 'queued' then
    return 0
end
redis.call('LPUSH', KEYS[2], ARGV[1])
return 1
