-- Records an attempt to deliver, and when the next one is due if there is to be one.
-- KEYS  1 delivery hash  2 job hash  3 hosts with work  4 due deliveries of the host  5 its busy ones
--       6 mark of a host that answers  7 pending deliveries
-- ARGV  1 job id  2 token of the claim  3 state after the attempt  4 HTTP status ('' for no answer)
--       5 delay before the next attempt, ms  6 host  7 most at a time for one host
--       8 news channel, told where the host has more that is due soon  9 attempts to show  10 life of the mark, s
--       11 the attempt for the log, as JSON
-- Returns 1, or 0 where another claim has taken over meanwhile (only a delivery that arrived still counts then)
local row = redis.call('HMGET', KEYS[1], 'token', 'state')
if row[2] or not row[1] or (row[1] ~= ARGV[2] and ARGV[3] ~= 'delivered') then
    return 0
end
redis.call('ZREM', KEYS[5], ARGV[1])
count(KEYS[2], 'attempts ' .. (ARGV[4] == '' and 'none' or string.sub(ARGV[4], 1, 1) .. 'xx'))
local log = redis.call('HGET', KEYS[1], 'log')
redis.call('HSET', KEYS[1], 'log', log and #log < 30000 and log .. ', ' .. ARGV[11] or ARGV[11])
local fields = {'callback_state', ARGV[3], 'callback_attempts', ARGV[9]}
if ARGV[4] == '' then
    redis.call('DEL', KEYS[6])
else
    redis.call('SET', KEYS[6], 1, 'EX', ARGV[10])
    table.insert(fields, 'callback_last_status')
    table.insert(fields, ARGV[4])
end
local job_exists = redis.call('EXISTS', KEYS[2]) == 1
if ARGV[3] == 'pending' then
    local at = now_ms() + tonumber(ARGV[5])
    redis.call('ZADD', KEYS[4], at, ARGV[1])
    table.insert(fields, 'callback_next_ms')
    table.insert(fields, at)
else
    redis.call('ZREM', KEYS[4], ARGV[1])
    redis.call('ZREM', KEYS[7], ARGV[1])
    count(KEYS[2], 'deliveries ' .. ARGV[3])
    redis.call('HSET', KEYS[1], 'state', ARGV[3])
    if job_exists then
        redis.call('HDEL', KEYS[2], 'callback_next_ms')
        redis.call('PEXPIRE', KEYS[1], math.max(1, redis.call('PTTL', KEYS[2])))
    else
        redis.call('DEL', KEYS[1])
    end
end
if job_exists then
    redis.call('HSET', KEYS[2], unpack(fields))
    tell_change(KEYS[2])
end
schedule_host(KEYS[3], KEYS[4], KEYS[5], ARGV[6], share_of(KEYS[6], tonumber(ARGV[7])))
local next_at = redis.call('ZSCORE', KEYS[3], ARGV[6])
if next_at and tonumber(next_at) <= now_ms() + 1000 then
    redis.call('PUBLISH', ARGV[8], ARGV[1])
end
return 1
