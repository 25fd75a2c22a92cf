-- Takes jobs that have expired out of the lists: some of those that expired first.
-- KEYS  1 minutes in which jobs expire
-- ARGV  1 most jobs
-- Returns how many entries it took; 0 where no minute is over
local minute = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', math.floor(now_ms() / 60000), 'LIMIT', 0, 1)[1]
if not minute then
    return 0
end
local entries = redis.call('LPOP', KEYS[1] .. ':' .. minute, ARGV[1]) or {}
for _, entry in ipairs(entries) do
    local status = string.sub(entry, 1, 1) == 's' and 'succeeded' or 'failed'
    local job_id, owner = string.sub(entry, 2, 37), string.sub(entry, 38)
    unlist_ended(string.gsub(KEYS[1], ':expiring$', ':job:') .. job_id, job_id, status, owner)
end
if #entries < tonumber(ARGV[1]) then
    redis.call('ZREM', KEYS[1], minute)
end
return math.max(1, #entries)
