-- Which of some jobs are queued and can never run: RQ has lost its part, cannot read it or holds it to be over, or the
-- job's entry is gone. Writes nothing.
-- An entry is looked for only where it should have had its turn, since that costs as much as the queue is long: the job
-- came no later than the last one that started, or before the one at the head, or the queue is empty. Whether the entry
-- is there is then seen in both of RQ's lists, in this one step, wherever in them it stands.
-- KEYS  1 delayed jobs
-- ARGV  1 prefix of job hashes  2 prefix of RQ's jobs  3 prefix of RQ's queue lists  4 end of the name of an
--       intermediate list  5 RQ's words for a job that is over, each between two spaces  6 most entries to look through
--       then job ids
-- Keys of jobs and queues are made from the prefixes, since the names of queues stand in the job hashes.
-- Returns {how many of the ids were looked at, {job id, ...} of those that can never run}
local budget, queues, orphans = tonumber(ARGV[6]), {}, {}

-- False also where the key is none of a hash.
local function field(key, name)
    local value = redis.pcall('HGET', key, name)
    return type(value) == 'string' and value
end

local function queue_named(name)
    if not queues[name] then
        local list = ARGV[3] .. name
        local head = redis.call('LINDEX', list, 0)
        local started = field(pace_key(ARGV[1], 'line', name), 'started')
        local next_number = head and field(ARGV[1] .. head, 'number')
        -- A job's turn is over below this number.
        local turn = math.max(tonumber(started or 0) + 1, tonumber(next_number or 0))
        queues[name] = {list = list, length = redis.call('LLEN', list), turn = turn}
    end
    return queues[name]
end

for at = 7, #ARGV do
    local job_id, job_key, rq_key = ARGV[at], ARGV[1] .. ARGV[at], ARGV[2] .. ARGV[at]
    if field(job_key, 'status') == 'queued' and not redis.call('ZSCORE', KEYS[1], job_id) then
        local rq_status, name = field(rq_key, 'status'), field(job_key, 'queue')
        if not rq_status or string.find(ARGV[5], ' ' .. rq_status .. ' ', 1, true) then
            table.insert(orphans, job_id)
        elseif name then
            local queue, number = queue_named(name), tonumber(field(job_key, 'number'))
            local is_due = queue.length == 0 or number and number < queue.turn
            if is_due and not redis.call('LPOS', queue.list .. ARGV[4], job_id) then
                if queue.length > budget and at > 7 then
                    return {at - 7, orphans}
                end
                budget = budget - queue.length
                if not redis.call('LPOS', queue.list, job_id) then
                    table.insert(orphans, job_id)
                end
            end
        end
    end
end
return {#ARGV - 6, orphans}
