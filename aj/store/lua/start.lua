-- A worker takes a job: queued becomes running, together with RQ's own bookkeeping, or nothing happens.
-- KEYS  1 job hash
-- ARGV  1 execution id  then RQ's commands
-- Returns {now in ms, field, value, ...} of the job hash, or false where the job is not there to be taken
local job = redis.call('HMGET', KEYS[1], 'status', 'execution')
if job[1] == 'queued' then
    redis.call('HINCRBY', KEYS[1], 'attempt', 1)
    redis.call('HSET', KEYS[1], 'status', 'running', 'execution', ARGV[1], 'started_ms', now_ms())
    redis.call('HDEL', KEYS[1], 'progress')
    run_commands(2)
elseif not (job[1] == 'running' and job[2] == ARGV[1]) then
    return false
end
local reply = redis.call('HGETALL', KEYS[1])
table.insert(reply, 1, now_ms())
return reply
