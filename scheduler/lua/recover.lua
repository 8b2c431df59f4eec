-- Takes back what a lapsed session held. The lease is judged again here, by server time: `seen` is the expiry that the
-- caller saw twice. `swept` 1: the host has proven that no process of the session lives, so the lease need not lapse.
-- KEYS: root
-- ARGV: session seen swept jitter limit
local bad = session_types(session)
if bad then return refuse('store_corrupt', bad) end
local expiry = redis.call('ZSCORE', K_SESSIONS, session)
local waiting = redis.call('SISMEMBER', K_LAPSED, session) == 1
if not expiry and not (waiting and swept == '1') then return done({taken = {}}) end
if swept ~= '1' and (expiry ~= seen or tonumber(expiry) >= NOW) then
  return refuse('conflict', 'session ' .. session .. ' has renewed')
end
local held = redis.call('SMEMBERS', k_held(session))
for _, m in ipairs(held) do
  local p, t = split(m)
  local b = task_types(p, t)
  if b then return refuse('store_corrupt', b) end
end
local exec = hash(k_exec(session)) or {}
local taken, kept = {}, 0
for _, m in ipairs(held) do
  local p, t = split(m)
  local row = hash(k_row(p, t))
  if row and row.sess == session then
    if row.tok then
      redis.call('RPUSH', k_fenced(session), lease_id(p, row))
      redis.call('PEXPIRE', k_fenced(session), 3600000)
    end
    if row.cancel == '1' and swept ~= '1' then
      kept = kept + 1
    elseif row.cancel == '1' then
      end_cancelled(p, t, row, 'recovery')
      finish(p)
    elseif row.st == 'claimed' then
      give_back(p, t, row, 'its executor was lost before it started', tonumber(limit), 'recovery')
    elseif row.st == 'verifying' then
      if row.tok then take_over(p, t, row, 'recovery', 'the worker of its checks was lost', tonumber(limit)) else
        release(p, t, row)
        index(p, t, row)
        sync_all(p)
      end
    elseif row.st == 'running' then
      redis.call('HSET', k_row(p, t), 'swp', 1)
      retry_or_fail(p, t, row, cjson.encode({kind = 'lost', reason = 'the worker ' .. (exec.name or session) ..
        ' stopped renewing its lease'}), true, tonumber(jitter))
    end
    if not (row.cancel == '1' and swept ~= '1') then taken[#taken + 1] = m end
  end
end
redis.call('ZREM', K_SESSIONS, session)
if exec.pool then redis.call('ZREM', k_idle(exec.pool, exec.plan or ''), session) end
if kept > 0 then
  redis.call('SADD', K_LAPSED, session)
  redis.call('HSET', k_exec(session), 'state', 'lost')
else
  redis.call('SREM', K_LAPSED, session)
  redis.call('DEL', k_exec(session), k_held(session), k_inbox(session))
end
return done({taken = taken, kept = kept})
