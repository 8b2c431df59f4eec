-- The claim's own predicates for one task, with the facts behind them. Writes nothing.
-- KEYS: root
-- ARGV: plan task
local p = hash(k_plan(plan))
if not p then return refuse('not_found', 'no plan ' .. plan) end
local row = hash(k_row(plan, task))
if not row then return refuse('not_found', 'no task ' .. task .. ' in plan ' .. plan) end
local causes, holders = {}, {}
local function add(c) if c then causes[#causes + 1] = c end end
if row.st == 'pending' or (row.st == 'verifying' and row.vt == '1') then
  add(row_cause(row))
  add(plan_cause(plan, p, row.pool == 'system'))
  add(pool_cause(row.pool))
  local idle = redis.call('ZCARD', k_idle(row.pool, plan)) + redis.call('ZCARD', k_idle(row.pool, ''))
  local live = 0
  for _, s in ipairs(redis.call('ZRANGEBYSCORE', K_SESSIONS, NOW, '+inf')) do
    local e = hash(k_exec(s))
    if e and e.pool == row.pool then
      if (e.plan or '') == '' or e.plan == plan then live = live + 1 end
      for _, m in ipairs(redis.call('SRANDMEMBER', k_held(s), 8)) do
        if #holders < 16 then holders[#holders + 1] = m end
      end
    end
  end
  if live == 0 then add({cause = 'no_worker', pool = row.pool})
  elseif idle == 0 then add({cause = 'no_idle_worker', pool = row.pool, workers = live}) end
end
local exec, lease
if row.sess and row.sess ~= '' then
  exec = hash(k_exec(row.sess))
  lease = redis.call('ZSCORE', K_SESSIONS, row.sess)
end
local dispatch = redis.call('ZSCORE', K_DISPATCH, member(plan, task))
return done({state = row.st, since = num(row, 't0'), attempt = num(row, 'att'), causes = causes, holders = holders, now = NOW,
  cancel = row.cancel == '1', cause = row.cause, worker = exec and exec.name, host = exec and exec.host,
  session = row.sess, verify_only = row.vt == '1', worker_state = exec and exec.state, lease = lease and tonumber(lease) - NOW,
  dispatch = dispatch and tonumber(dispatch) - NOW, plan_state = p.state})
