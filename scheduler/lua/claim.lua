-- The daemon's claim: as many ready tasks as there are idle executors that match. A repeat of `call` returns the first answer.
-- KEYS: root
-- ARGV: caller call only limit dispatch
local bad = wrong_type({K_DISPATCH, 'zset', K_LATER, 'zset', K_USED, 'hash', K_LIMITS, 'hash', K_BELL, 'stream',
  K_SESSIONS, 'zset', R .. 'turn', 'string', R .. 'reply:' .. caller, 'hash'})
if bad then return refuse('store_corrupt', bad) end
local before = hash(R .. 'reply:' .. caller)
if before and before.call == call then return before.reply end
promote()
local claims = {}
local room = tonumber(limit)
local function serve(pool, plan)
  local idle = k_idle(pool, plan)
  for _, session in ipairs(redis.call('ZRANGE', idle, 0, LOOK - 1)) do
    if #claims >= room then return end
    local exec = hash(k_exec(session))
    local lease = tonumber(redis.call('ZSCORE', K_SESSIONS, session) or '0')
    if not exec or lease < NOW then
      redis.call('ZREM', idle, session)
    else
      exec.plan = exec.plan or ''
      local got = claim_one(session, exec, only, tonumber(dispatch))
      if not got then return end
      claims[#claims + 1] = got
      not_idle(session, exec, 'busy')
      if got.lingering then
        redis.call('RPUSH', k_inbox(session), 'claim')
        redis.call('PEXPIRE', k_inbox(session), 60000)
      end
    end
  end
end
for _, pool in ipairs(redis.call('HKEYS', K_LIMITS)) do
  if only ~= '' then serve(pool, only) end
  serve(pool, '')
end
local reply = done({claims = claims})
if #claims > 0 then
  redis.call('HSET', R .. 'reply:' .. caller, 'call', call, 'reply', reply)
  redis.call('PEXPIRE', R .. 'reply:' .. caller, 600000)
end
return reply
