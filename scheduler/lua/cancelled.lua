-- The owner has proven that no process of a cancelled attempt lives; only now lease and slot are released.
-- KEYS: root
-- ARGV: plan task attempt token session
local bad = task_types(plan, task) or session_types(session)
if bad then return refuse('store_corrupt', bad) end
local row = hash(k_row(plan, task))
if row and row.att == attempt and row.st == 'cancelled' then return done({state = row.st}) end
local unstarted_claim = row and row.att == attempt and row.st == 'claimed' and row.sess == session and token == ''
if not unstarted_claim then
  local no = fence(plan, task, row, attempt, token, 'cancelled')
  if no then return no end
end
if row.cancel ~= '1' then return refuse('conflict', task .. ' is not asked to be cancelled') end
end_cancelled(plan, task, row, session)
return done({state = 'cancelled'})
