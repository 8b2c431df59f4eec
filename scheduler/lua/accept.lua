-- verifying -> completed, only with an accepting record of this attempt, token and digest for every check. Whoever calls.
-- The same round trip may hand the executor its next tasks.
-- KEYS: root
-- ARGV: plan task attempt token session count dispatch
local bad = task_types(plan, task) or wrong_type({k_evidence(plan, task, attempt), 'hash'}) or session_types(session)
if bad then return refuse('store_corrupt', bad) end
local row = hash(k_row(plan, task))
if row and row.st == 'completed' and row.tok == token then
  return done({state = row.st, claims = next_claims(session, tonumber(count), tonumber(dispatch))})
end
local no = fence(plan, task, row, attempt, token, 'accept')
if no then return no end
if row.cancel == '1' then return refuse('conflict', task .. ' is asked to be cancelled', {cancel = true}) end
local nexts, broken = read_next(plan, task)
if broken then return refuse('store_corrupt', broken) end
for i = 0, num(row, 'ck') - 1 do
  local raw = redis.call('HGET', k_evidence(plan, task, attempt), i)
  if not raw then return refuse('no_evidence', task .. ': no evidence for check ' .. i) end
  local e = cjson.decode(raw)
  if e.accepted ~= true then return refuse('no_evidence', task .. ': check ' .. i .. ' did not accept: ' .. tostring(e.reason)) end
  if e.token ~= token or e.attempt ~= tonumber(attempt) or e.result ~= row.res then
    return refuse('no_evidence', task .. ': the evidence of check ' .. i .. ' is of another attempt or result')
  end
end
release(plan, task, row)
move(plan, task, row, 'accept', {result = row.res})
satisfy(plan, task, row, nexts)
if row.fb then spare(plan, row.fb, task) end
sync_all(plan)
finish(plan)
local claims = {}
if tonumber(count) > 0 then claims = next_claims(session, tonumber(count), tonumber(dispatch)) end
return done({state = row.st, claims = claims})
