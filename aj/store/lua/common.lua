-- Put before every script. `run_commands` runs commands that RQ's own code made, behind a guard that has just
-- been passed. ARGV from `first` to `last` or the end: for each command the count of its words, then the words.
local function run_commands(first, last)
    local at = first
    while at <= (last or #ARGV) do
        local words = tonumber(ARGV[at])
        redis.call(unpack(ARGV, at + 1, at + words))
        at = at + words + 1
    end
end

-- The prefix of the deployment whose job it is. One call of a script is about one deployment, so it is looked for once.
local known_prefix
local function prefix_of(job_key)
    known_prefix = known_prefix or string.match(job_key, '^(.*):job:')
    return known_prefix
end

-- Tells the requests that wait for a change of a job: its id, and ' ended' where it is or is gone, since most wait for that
-- alone. The channel is named after the job's key.
local function tell_change(job_key, ended)
    redis.call('PUBLISH', prefix_of(job_key) .. ':changes', string.match(job_key, '[^:]+$') .. (ended or ''))
end

local function now_ms()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- What an ended job keeps of the execution that ended it: enough to know it by, in a fourth of the room.
local function mark_of(execution)
    return string.sub(execution, 1, 8)
end
