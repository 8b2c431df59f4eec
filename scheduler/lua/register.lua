-- An executor's session begins: its row and its lease. Twice is once.
-- KEYS: root
-- ARGV: session lease name host pid pool queue plan agents sandbox version
local bad = session_types(session)
if bad then return refuse('store_corrupt', bad) end
redis.call('HSET', k_exec(session), 'name', name, 'host', host, 'pid', pid, 'pool', pool, 'queue', queue, 'plan', plan,
  'agents', agents, 'sandbox', sandbox, 'version', version, 'state', 'busy', 'since', NOW)
redis.call('ZADD', K_SESSIONS, NOW + tonumber(lease), session)
return done()
