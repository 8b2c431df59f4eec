-- claimed -> running (or verification after a takeover): the owner token becomes the fence. Charged from here on.
-- KEYS: root
-- ARGV: plan task attempt session token
local bad = task_types(plan, task)
if bad then return refuse('store_corrupt', bad) end
local row = hash(k_row(plan, task))
if not row then return refuse('not_found', 'no task ' .. task .. ' in plan ' .. plan) end
if row.att ~= attempt then
  return refuse('fenced', 'attempt ' .. attempt .. ' of ' .. task .. ' was taken back (now attempt ' .. (row.att or '0') .. ')')
end
if row.tok == token then return done({state = row.st}) end
if row.sess ~= session or row.tok then
  return refuse('fenced', 'attempt ' .. attempt .. ' of ' .. task .. ' belongs to another executor')
end
if not TASKS.start[row.st] or (row.st == 'verifying' and row.vt ~= '1') then
  return refuse('conflict', task .. ' is ' .. row.st .. ', so start is refused', {state = row.st})
end
if not redis.call('ZSCORE', K_SESSIONS, session) then return refuse('fenced', 'the lease of ' .. session .. ' has ended') end
if row.cancel == '1' then return refuse('conflict', task .. ' is asked to be cancelled', {cancel = true}) end
local verify = row.st == 'verifying'
redis.call('ZREM', K_DISPATCH, member(plan, task))
redis.call('HSET', k_row(plan, task), 'tok', token)
redis.call('HDEL', k_row(plan, task), 'vt', 'swp')
if not verify then redis.call('HINCRBY', k_row(plan, task), 'charged', 1) end
move(plan, task, row, 'start', {token = string.sub(token, 1, 8), verify = verify or nil})
return done({state = row.st})
