-- Intent to cancel a plan (task empty) or one task. Live attempts keep lease and slot until they are proven gone.
-- KEYS: root
-- ARGV: plan task who
local bad = plan_types(plan)
if bad then return refuse('store_corrupt', bad) end
local p = hash(k_plan(plan))
if not p then return refuse('not_found', 'no plan ' .. plan) end
local function ask(t, row)
  if row.st == 'pending' and not row.exp then
    unindex(plan, t, row)
    move(plan, t, row, 'ask_cancel', {by = who})
    to_settle(plan, t)
    return
  end
  if row.cancel == '1' or row.exp then return end
  redis.call('HSET', k_row(plan, t), 'cancel', '1')
  move(plan, t, row, 'ask_cancel', {by = who})
  if row.sess and row.sess ~= '' then
    redis.call('RPUSH', k_inbox(row.sess), 'cancel')
    redis.call('PEXPIRE', k_inbox(row.sess), 60000)
  elseif row.st == 'verifying' then
    unindex(plan, t, row)
    end_cancelled(plan, t, row, who)
  end
end
if task == '' then
  if p.state == 'cancelling' or p.state == 'cancelled' then return done({state = p.state}) end
  local to = PLANS.ask_cancel[p.state]
  if not to then return refuse('conflict', 'plan ' .. plan .. ' is ' .. p.state .. ' already') end
  redis.call('HSET', k_plan(plan), 'state', to, 'cursor', 0)
  redis.call('HDEL', k_plan(plan), 'reason')
  redis.call('SADD', K_DIRTY, plan)
  emit(plan, {ev = 'plan.ask_cancel', from = p.state, to = to, by = who})
  for _, t in ipairs(redis.call('SMEMBERS', k_live(plan))) do ask(t, hash(k_row(plan, t))) end
  sync_all(plan)
  ring(plan)
  return done({state = to})
end
local row = hash(k_row(plan, task))
if not row then return refuse('not_found', 'no task ' .. task .. ' in plan ' .. plan) end
if row.st == 'cancelled' then return done({state = row.st}) end
if not TASKS.ask_cancel[row.st] then return refuse('conflict', task .. ' is ' .. row.st .. ' already') end
ask(task, row)
sync_all(plan)
finish(plan)
return done({state = row.st})
