-- Sends a webhook again whose delivery has come to its end, with the same id and bytes.
-- KEYS  1 delivery hash  2 job hash  3 hosts with work  4 pending deliveries
-- ARGV  1 prefix of the outbox keys  2 job id  3 news channel
-- The key of the host's deliveries is made from the prefix, since its name stands in the delivery hash.
-- Returns 'sent', 'pending' where it is under way already, or 'none' where there is no webhook
local row = redis.call('HMGET', KEYS[1], 'host', 'state')
if not row[1] or redis.call('EXISTS', KEYS[2]) == 0 then
    return 'none'
end
if not row[2] then
    return 'pending'
end
local now = now_ms()
redis.call('HDEL', KEYS[1], 'state', 'token')
redis.call('HSET', KEYS[1], 'attempts', 0)
redis.call('PERSIST', KEYS[1])
redis.call('ZADD', ARGV[1] .. ':due:' .. row[1], now, ARGV[2])
redis.call('ZADD', KEYS[3], 'LT', now, row[1])
redis.call('ZADD', KEYS[4], now, ARGV[2])
redis.call('HSET', KEYS[2], 'callback_state', 'pending', 'callback_attempts', 0, 'callback_next_ms', now)
redis.call('PUBLISH', ARGV[3], ARGV[2])
tell_change(KEYS[2])
return 'sent'
