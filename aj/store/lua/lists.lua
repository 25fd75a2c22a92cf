-- The lists of jobs that callers see, each ordered by id and so by time. Where callers are told apart each has lists
-- of its own, so that a page costs as much for one who has few jobs among millions. The keys are made from the job's:
--   <prefix>:active                     sorted set: every active job, whoever's, for the sweep
--   <prefix>:active:<owner>             sorted set: active jobs of one caller
--   <prefix>:ended:<status>[:<owner>]   sorted set: ended jobs, of one caller where callers are told apart
--   <prefix>:expiring                   sorted set of minutes since the epoch, in which ended jobs expire
--   <prefix>:expiring:<minute>          list: 's' or 'f' for the status, job id, owner: jobs that are gone by then
local function list_key(job_key, name, owner)
    local prefix = prefix_of(job_key)
    return prefix .. ':' .. name .. (owner and owner ~= '' and ':' .. owner or '')
end

local function list_active(job_key, job_id, owner)
    redis.call('ZADD', list_key(job_key, 'active'), 0, job_id)
    if owner ~= '' then
        redis.call('ZADD', list_key(job_key, 'active', owner), 0, job_id)
    end
end

local function list_ended(job_key, job_id, owner, status, now, life_s)
    redis.call('ZREM', list_key(job_key, 'active'), job_id)
    if owner ~= '' then
        redis.call('ZREM', list_key(job_key, 'active', owner), job_id)
    end
    redis.call('ZADD', list_key(job_key, 'ended:' .. status, owner), 0, job_id)
    local expiring = list_key(job_key, 'expiring')
    local minute = string.format('%d', math.floor(now / 60000 + tonumber(life_s) / 60) + 1)
    if redis.call('RPUSH', expiring .. ':' .. minute, string.sub(status, 1, 1) .. job_id .. owner) == 1 then
        redis.call('ZADD', expiring, minute, minute)
    end
end

local function unlist_ended(job_key, job_id, status, owner)
    redis.call('ZREM', list_key(job_key, 'ended:' .. status, owner), job_id)
end

-- The tombstone of a job: since when it is gone, ms, less than 0 where it was deleted; then, where callers are told apart,
-- its owner. A number alone takes the store no room beside its key.
local function tombstone_of(gone_ms, owner)
    return owner == '' and gone_ms or gone_ms .. ' ' .. owner
end
