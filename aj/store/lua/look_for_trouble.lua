-- What a sweep has to see to: jobs whose lease is over, and delayed jobs that are due.
-- KEYS  1 leases of running jobs  2 delayed jobs
-- ARGV  1 most of each
-- Returns {now in ms, {job id, ...} lapsed, {job id, ...} due}
local now = now_ms()
local lapsed = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, ARGV[1])
return {now, lapsed, due}
