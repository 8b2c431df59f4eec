-- Extends a session's lease by server time and answers what it holds, what was taken from it, what shall be cancelled.
-- KEYS: root
-- ARGV: session lease
local bad = session_types(session)
if bad then return refuse('store_corrupt', bad) end
local fenced = redis.call('LRANGE', k_fenced(session), 0, -1)
if not redis.call('ZSCORE', K_SESSIONS, session) then return done({alive = false, held = {}, fenced = fenced}) end
local held = {}
for _, m in ipairs(redis.call('SMEMBERS', k_held(session))) do
  local p, t = split(m)
  local row = hash(k_row(p, t))
  if row and row.sess == session and row.tok then
    held[#held + 1] = {plan = p, task = t, number = num(row, 'n'), attempt = num(row, 'att'), token = row.tok, state = row.st,
      cancel = row.cancel == '1'}
  end
end
redis.call('ZADD', K_SESSIONS, NOW + tonumber(lease), session)
if #fenced > 0 then redis.call('DEL', k_fenced(session)) end
return done({alive = true, held = held, fenced = fenced})
