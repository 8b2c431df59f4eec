-- running -> verifying, the result stored in the same step.
-- KEYS: root
-- ARGV: plan task attempt token digest result
local bad = task_types(plan, task)
if bad then return refuse('store_corrupt', bad) end
local row = hash(k_row(plan, task))
if row and row.tok == token and row.att == attempt and row.st == 'verifying' and row.res == digest then return done({state = row.st}) end
local no = fence(plan, task, row, attempt, token, 'submit')
if no then return no end
redis.call('HSET', k_results(plan, task), attempt, result)
redis.call('HSET', k_row(plan, task), 'res', digest)
move(plan, task, row, 'submit', {result = digest})
return done({state = row.st})
