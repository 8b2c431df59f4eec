-- A started attempt ends badly: again, or failed, as the ledger says. Configuration may fail a claim that has not started.
-- KEYS: root
-- ARGV: plan task attempt token session failure again jitter
local bad = task_types(plan, task) or session_types(session)
if bad then return refuse('store_corrupt', bad) end
local row = hash(k_row(plan, task))
if row and row.att == attempt and row.st == 'claimed' and token == '' and row.sess == session then
  return done({state = retry_or_fail(plan, task, row, failure, false, 0)})
end
if row and row.att == attempt and row.tok == token and (row.st == 'pending' or row.st == 'failed') then
  return done({state = row.st})
end
local no = fence(plan, task, row, attempt, token, 'fail')
if no then return no end
if row.cancel == '1' then
  end_cancelled(plan, task, row, 'worker')
  return done({state = 'cancelled'})
end
return done({state = retry_or_fail(plan, task, row, failure, again == '1', tonumber(jitter))})
