-- What `GET /metrics` tells. Writes nothing.
-- KEYS  1 what was counted  2 leases of running jobs  3 delayed jobs  4 pending deliveries
--       5 RQ's mark that workers are suspended
-- ARGV  1 prefix of job hashes  2 prefix of RQ's queue lists  3 prefix of RQ's sets of workers
--       4 our prefix  then queue names
-- Keys of jobs, queues and workers are made from the prefixes, since the names of jobs and workers stand in the store.
-- Returns {now in ms, {field, count, ...}, running, delayed, pending, since when the oldest is pending in ms or -1,
--          whether workers are suspended (1 or 0),
--          {jobs in the queue, since when its first one waits in ms or -1, living workers of ours} for each queue}
local pending = redis.call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
local reply = {
    now_ms(), redis.call('HGETALL', KEYS[1]), redis.call('ZCARD', KEYS[2]), redis.call('ZCARD', KEYS[3]),
    redis.call('ZCARD', KEYS[4]), tonumber(pending[2] or -1), redis.call('EXISTS', KEYS[5]),
}
for at = 5, #ARGV do
    local queue = ARGV[2] .. ARGV[at]
    local workers = living_workers(ARGV[3] .. ARGV[at], ARGV[4])
    table.insert(reply, {redis.call('LLEN', queue), first_waits_since(queue, ARGV[1]), workers})
end
return reply
