-- How many deliveries a host may hold at a time: its share, or one where it has not answered lately.
-- `outbox` is the prefix of the outbox keys.
local function share_of(outbox, host, share)
    return redis.call('EXISTS', outbox .. ':answers:' .. host) == 1 and share or 1
end

-- Notes in `hosts` when a host has work next: when its first delivery is due, or, while its share is taken, when the
-- first lease ends. A record of an attempt frees a place and calls this again. A host that has had its turn stands
-- behind the others, however long its deliveries have been due: else one with many of them would always be the first.
local function schedule_host(outbox, hosts, host, share)
    local busy = outbox .. ':busy:' .. host
    local first = redis.call('ZRANGE', outbox .. ':due:' .. host, 0, 0, 'WITHSCORES')
    if not first[1] then
        redis.call('ZREM', hosts, host)
        return
    end
    local at = math.max(tonumber(first[2]), now_ms())
    if redis.call('ZCARD', busy) >= share then
        local lease = redis.call('ZRANGE', busy, 0, 0, 'WITHSCORES')
        at = math.max(at, tonumber(lease[2]))
    end
    redis.call('ZADD', hosts, at, host)
end
