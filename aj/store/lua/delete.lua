-- Forgets an ended job now; its tombstone says that it was deleted. A webhook that is owed is still delivered.
-- KEYS  1 job hash  2 tombstone  then RQ's keys of the job, which are deleted
-- ARGV  1 job id  2 life of the tombstone where there is none, ms
-- Returns 'deleted', also where that was done before, 'active', 'expired' or 'unknown'
local status = redis.call('HGET', KEYS[1], 'status')
if status == 'queued' or status == 'running' then
    return 'active'
end
local tombstone = redis.call('GET', KEYS[2])
if not status then
    return not tombstone and 'unknown' or string.sub(tombstone, 1, 1) == '-' and 'deleted' or 'expired'
end
local life_ms = math.max(1, redis.call('PTTL', KEYS[2]), tonumber(ARGV[2]))
local owner = redis.call('HGET', KEYS[1], 'owner') or ''
redis.call('SET', KEYS[2], tombstone_of(string.format('-%d', now_ms()), owner), 'PX', life_ms)
unlist_ended(KEYS[1], ARGV[1], status, owner)
redis.call('DEL', KEYS[1], unpack(KEYS, 3))
tell_change(KEYS[1], ' ended')
return 'deleted'
