-- How many deliveries a host may hold at a time: its share, or one while it does not answer.
local function share_of(failing, share)
    return redis.call('EXISTS', failing) == 1 and 1 or share
end

-- Notes when a host has work next: when its first delivery is due, or, while its share is taken, when the first
-- lease ends. A record of an attempt frees a place and calls this again.
local function schedule_host(hosts, due, busy, host, share)
    local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
    if not first[1] then
        redis.call('ZREM', hosts, host)
        return
    end
    local at = tonumber(first[2])
    if redis.call('ZCARD', busy) >= share then
        local lease = redis.call('ZRANGE', busy, 0, 0, 'WITHSCORES')
        at = math.max(at, tonumber(lease[2]))
    end
    redis.call('ZADD', hosts, at, host)
end
