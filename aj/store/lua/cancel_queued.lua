-- A job that waits is cancelled: it ends, and its entry leaves the queue, or nothing happens.
-- KEYS, ARGV: see end_job.lua, with 8 delayed jobs as another key; RQ's commands take the entry away
-- Returns 1, or 0 where the job does not wait
if redis.call('HGET', KEYS[1], 'status') ~= 'queued' then
    return 0
end
redis.call('ZREM', KEYS[8], ARGV[2])
end_job(now_ms())
return 1
