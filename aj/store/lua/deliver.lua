-- A deliverer's turn: records the attempts that have come to their end, then claims what is due, in one step.
-- KEYS  1 hosts with work  2 pending deliveries
-- ARGV  1 prefix of the outbox keys  2 prefix of job hashes  3 news channel  4 most at a time for one host
--       5 most deliveries wanted (0 to record only)  6 most of them for hosts that have not answered lately
--       7 lease, ms  8 token of this claim  then the words of each attempt, as `record_attempt` has them
-- Keys of jobs, hosts and deliveries are made from the prefixes, since names of hosts stand in KEYS[1].
-- Returns what `claim_deliveries` gives
local outbox, share, freed = ARGV[1], tonumber(ARGV[4]), {}
for at = 9, #ARGV, ATTEMPT_WORDS do
    record_attempt(outbox, ARGV[2], KEYS[2], at)
    freed[ARGV[at + 1]] = true
end
for host in pairs(freed) do
    schedule_host(outbox, KEYS[1], host, share_of(outbox, host, share))
end
local reply, is_left = claim_deliveries(
    outbox, KEYS[1], share, tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8])
-- Other deliverers learn of a place that this one has freed and cannot fill.
if is_left and next(freed) then
    redis.call('PUBLISH', ARGV[3], '')
end
return reply
