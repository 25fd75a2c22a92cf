-- What a sweep has to see to: jobs whose lease is over, and delayed jobs that are due.
-- It asks of the store what a worker's sign of life asks, and changes nothing: where the store refuses the one, out of
-- memory, read-only or by an ACL, it refuses the other too, and the sweep knows that nobody could renew a lease.
-- KEYS  1 leases of running jobs  2 delayed jobs  3 a job hash that there is not
-- ARGV  1 most of each
-- Returns {now in ms, {job id, ...} lapsed, {job id, ...} due}
local now = now_ms()
redis.call('HMGET', KEYS[3], 'status')
redis.call('ZADD', KEYS[1], 'XX', now, '')
local lapsed = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, ARGV[1])
return {now, lapsed, due}
