-- Asks the worker of a running job to stop it; the worker sees it at its next sign of life.
-- KEYS  1 job hash
-- Returns 1, or 0 where the job does not run
if redis.call('HGET', KEYS[1], 'status') ~= 'running' then
    return 0
end
redis.call('HSET', KEYS[1], 'stop', 1)
return 1
