-- How quickly one caller may submit: `at_once` jobs at once, and one more each `window / at_once`. What is kept is the time
-- at which its whole quota is back, in microseconds, and only until then.
-- Source: the generic cell rate algorithm, ITU-T I.371 annex A.
-- Gives {jobs that may still be submitted, ms until there are more}, after one was, where `uses_one`; {} without limit.
local function quota(key, at_once, window_s, uses_one)
    if at_once == 0 then
        return {}
    end
    local time = redis.call('TIME')
    local now, window, step = time[1] * 1000000 + time[2], window_s * 1000000, window_s * 1000000 / at_once
    local whole_at = math.max(now, tonumber(redis.call('GET', key) or 0))
    if uses_one then
        whole_at = whole_at + step
        redis.call('SET', key, string.format('%.0f', whole_at), 'PX', math.ceil((whole_at - now) / 1000))
    end
    -- A millionth, since what is kept is rounded.
    local left = math.max(0, math.floor((window - (whole_at - now)) / step + 0.000001))
    local more_at = left > 0 and whole_at or whole_at + step - window
    return {left, math.ceil(math.max(0, more_at - now) / 1000)}
end
