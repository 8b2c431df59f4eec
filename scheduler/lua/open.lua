-- The daemon has judged a task's `if`: open, skip (false) or fail (it cannot be evaluated). Twice is once.
-- KEYS: root
-- ARGV: plan task verdict detail
local bad = task_types(plan, task)
if bad then return refuse('store_corrupt', bad) end
local row = hash(k_row(plan, task))
if not row then return refuse('not_found', 'no task ' .. task .. ' in plan ' .. plan) end
local cause = row_cause(row)
if not cause or cause.cause ~= 'gate' or not (cause.gate == 'if' or (cause.gate == 'for_each' and verdict == 'fail')) then
  redis.call('LREM', k_gates(plan), 0, task)
  return done({state = row.st, existing = true})
end
redis.call('LREM', k_gates(plan), 0, task)
if verdict == 'open' then
  redis.call('HDEL', k_row(plan, task), 'g_if')
  row.g_if = nil
  move(plan, task, row, 'open', {gate = 'if'})
  arrive(plan, task, row)
elseif verdict == 'skip' then
  redis.call('HSET', k_row(plan, task), 'cause', detail)
  set_soft(plan, task, row, true)
  move(plan, task, row, 'skip', {cause = detail})
  to_settle(plan, task)
else
  redis.call('HSET', k_results(plan, task), 'f' .. num(row, 'att'), cjson.encode({kind = 'configuration', reason = detail}))
  set_soft(plan, task, row, row.cont == '1' or row.fb ~= nil)
  move(plan, task, row, 'fail', {failure = {kind = 'configuration', reason = detail}})
  to_settle(plan, task)
end
sync_all(plan)
return done({state = row.st, existing = false})
