-- An executor says how it stands: idle (in RQ), lingering (inside a job), busy, or draining; renews its lease on the way.
-- Answers with the claims that it holds and has not started. A lingering executor is given the next task at once.
-- KEYS: root
-- ARGV: session lease mode count dispatch
local bad = session_types(session) or wrong_type({K_DISPATCH, 'zset', K_LATER, 'zset', K_USED, 'hash', K_LIMITS, 'hash',
  K_BELL, 'stream', R .. 'turn', 'string'})
if bad then return refuse('store_corrupt', bad) end
if not redis.call('ZSCORE', K_SESSIONS, session) then return done({alive = false, claims = {}}) end
local exec = hash(k_exec(session))
exec.plan = exec.plan or ''
redis.call('ZADD', K_SESSIONS, NOW + tonumber(lease), session)
if mode == 'busy' or mode == 'draining' then
  not_idle(session, exec, mode)
  return done({alive = true, claims = unstarted(session, exec)})
end
if exec.state == 'draining' then return done({alive = true, claims = {}}) end
local claims
if mode == 'lingering' then
  claims = next_claims(session, tonumber(count), tonumber(dispatch))
else
  claims = unstarted(session, exec)
end
if #claims > 0 then
  not_idle(session, exec, 'busy')
else
  local known = redis.call('ZSCORE', k_idle(exec.pool, exec.plan), session)
  redis.call('HSET', k_exec(session), 'state', mode)
  redis.call('DEL', k_inbox(session))
  if not known then
    redis.call('ZADD', k_idle(exec.pool, exec.plan), NOW, session)
    if redis.call('ZCARD', k_turns(exec.pool)) > 0 then ring('') end
  end
end
return done({alive = true, claims = claims})
