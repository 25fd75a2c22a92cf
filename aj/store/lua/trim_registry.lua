-- Takes jobs that have expired out of one of RQ's registries: some of those that expired first. RQ does it in its
-- maintenance, which we do not run since it may fail jobs that are well, and all at once, however many there are.
-- KEYS  1 registry: sorted set, job id → when it expires, s
-- ARGV  1 most jobs
-- Returns how many it took
local expired = redis.call('ZRANGEBYSCORE', KEYS[1], 0, now_ms() / 1000, 'LIMIT', 0, ARGV[1])
if expired[1] then
    redis.call('ZREM', KEYS[1], unpack(expired))
end
return #expired
