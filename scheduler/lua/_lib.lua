-- Shared by every script: keys, reading with type checks, moving a task, indexes, predicates, the claim itself.
-- TASKS and PLANS (event -> source -> target) are put in front of this file from lifecycle.py; the rule exists once.
-- Reads and refusals come first in every script, writes last: a run-time error must find nothing half done.

local R = KEYS[1]
local LOOK = 64

local clock = redis.call('TIME')
local NOW = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

local function k_plan(p) return R .. 'p:' .. p end
local function k_row(p, t) return R .. 't:' .. p .. ':' .. t end
local function k_next(p, t) return R .. 'd:' .. p .. ':' .. t end
local function k_order(p) return R .. 'o:' .. p end
local function k_events(p) return R .. 'e:' .. p end
local function k_live(p) return R .. 'lv:' .. p end
local function k_settle(p) return R .. 'st:' .. p end
local function k_gates(p) return R .. 'g:' .. p end
local function k_ready(pool, p) return R .. 'r:' .. pool .. ':' .. p end
local function k_turns(pool) return R .. 'pl:' .. pool end
local function k_evidence(p, t, a) return R .. 'ev:' .. p .. ':' .. t .. ':' .. a end
local function k_results(p, t) return R .. 'res:' .. p .. ':' .. t end
local function k_exec(s) return R .. 'x:' .. s end
local function k_held(s) return R .. 'xh:' .. s end
local function k_fenced(s) return R .. 'xf:' .. s end
local function k_inbox(s) return R .. 'in:' .. s end
local function k_idle(pool, plan) return R .. 'idle:' .. pool .. ':' .. (plan == '' and '*' or plan) end
local K_SESSIONS, K_LAPSED, K_DISPATCH, K_LATER = R .. 'sess', R .. 'lost', R .. 'disp', R .. 'later'
local K_LIMITS, K_USED, K_BELL, K_ACTIVE, K_DIRTY = R .. 'pools', R .. 'used', R .. 'bell', R .. 'active', R .. 'dirty'

local function member(p, t) return p .. '|' .. t end
local function split(m)
  local at = string.find(m, '|', 1, true)
  return string.sub(m, 1, at - 1), string.sub(m, at + 1)
end

-- The name of one ownership: what guard and renewal call it (model.run.lease_id).
local function lease_id(p, row)
  return p .. '_' .. (row.n or '0') .. '_' .. (row.att or '0') .. '_' .. string.sub(row.tok or '', 1, 8)
end

local function refuse(code, message, facts)
  facts = facts or {}
  facts.refusal = code
  facts.message = message
  return cjson.encode(facts)
end

local function done(facts)
  facts = facts or {}
  facts.ok = true
  return cjson.encode(facts)
end

-- Returns the name of a key that exists with another type than the one asked for, else nil.
local function wrong_type(pairs_)
  for i = 1, #pairs_, 2 do
    local is = redis.call('TYPE', pairs_[i])['ok']
    if is ~= 'none' and is ~= pairs_[i + 1] then return pairs_[i] .. ' is ' .. is end
  end
  return nil
end

local function plan_types(p)
  local bad = wrong_type({
    k_plan(p), 'hash', k_events(p), 'stream', k_live(p), 'set', k_settle(p), 'list', k_gates(p), 'list', K_ACTIVE, 'set', K_DIRTY, 'set',
    K_DISPATCH, 'zset', K_LATER, 'zset', K_USED, 'hash', K_LIMITS, 'hash', K_BELL, 'stream', R .. 'turn', 'string'})
  if bad then return bad end
  for pool in string.gmatch(redis.call('HGET', k_plan(p), 'pools') or '', '[^,]+') do
    bad = wrong_type({k_ready(pool, p), 'zset', k_turns(pool), 'zset'})
    if bad then return bad end
  end
  return nil
end

local function task_types(p, t)
  local bad = plan_types(p)
  if bad then return bad end
  return wrong_type({k_row(p, t), 'hash', k_next(p, t), 'string', k_results(p, t), 'hash'})
end

local function session_types(s)
  return wrong_type({k_exec(s), 'hash', k_held(s), 'set', k_fenced(s), 'list', k_inbox(s), 'list', K_SESSIONS, 'zset',
    K_LAPSED, 'set'})
end

local function hash(key)
  local flat = redis.call('HGETALL', key)
  if #flat == 0 then return nil end
  local out = {}
  for i = 1, #flat, 2 do out[flat[i]] = flat[i + 1] end
  return out
end

local function num(row, field) return tonumber(row[field] or '0') end

local function emit(p, event)
  redis.call('XADD', k_events(p), '*', 'd', cjson.encode(event))
end

local function ring(p)
  redis.call('XADD', K_BELL, 'MAXLEN', '~', 128, '*', 'p', p)
end

-- Predicates of the claim. `why` prints what they return; the claim asks whether it is nil.

local function plan_cause(p, plan, system)
  if plan.state ~= 'running' then return {cause = 'plan', state = plan.state, reason = plan.reason or ''} end
  if plan.approved ~= plan.hash then return {cause = 'approval', hash = plan.hash, version = plan.version} end
  if plan.ff then return {cause = 'fail_fast', task = plan.ff} end
  if not system and num(plan, 'used') >= num(plan, 'concurrency') then
    return {cause = 'concurrency', used = num(plan, 'used'), limit = num(plan, 'concurrency'),
      holders = redis.call('SMEMBERS', k_live(p))}
  end
  return nil
end

local function pool_cause(pool)
  local limit = tonumber(redis.call('HGET', K_LIMITS, pool) or '1000000')
  local used = tonumber(redis.call('HGET', K_USED, pool) or '0')
  if used >= limit then return {cause = 'pool', pool = pool, used = used, limit = limit} end
  return nil
end

local function row_cause(row)
  if row.st == 'verifying' then
    if row.vt == '1' and (row.sess or '') == '' then return nil end
    return {cause = 'state', state = row.st}
  end
  if row.st ~= 'pending' then return {cause = 'state', state = row.st} end
  if row.exp then return {cause = 'instances', left = num(row, 'wait'), of = num(row, 'exp')} end
  if num(row, 'wait') > 0 then return {cause = 'edges', left = num(row, 'wait')} end
  if row.g_fb then return {cause = 'gate', gate = 'fallback', of = row.g_fb} end
  if row.g_end then return {cause = 'gate', gate = 'end'} end
  if row.g_if then return {cause = 'gate', gate = 'if'} end
  if row.g_each then return {cause = 'gate', gate = 'for_each'} end
  if num(row, 'nb') > NOW then return {cause = 'backoff', release = num(row, 'nb')} end
  return nil
end

-- Indexes

local function sync(p, plan, pool)
  local turns = k_turns(pool)
  local open = redis.call('ZCARD', k_ready(pool, p)) > 0 and plan_cause(p, plan, pool == 'system') == nil
  if not open then
    redis.call('ZREM', turns, p)
  elseif not redis.call('ZSCORE', turns, p) then
    redis.call('ZADD', turns, redis.call('INCR', R .. 'turn'), p)
  end
  return open
end

local function sync_all(p)
  local plan = hash(k_plan(p))
  local open = false
  for pool in string.gmatch(plan.pools, '[^,]+') do open = sync(p, plan, pool) or open end
  if open then ring(p) end
end

-- Order within a plan's ready tasks: priority, then longest remaining path, then place in the file. Exact below 2^53.
local function score(priority, path, number)
  return priority * 1e12 + path * 1e6 + (1e6 - number)
end

-- The index of a task whose predicates hold but for slots: ready now, or later.
local function index(p, t, row)
  if num(row, 'nb') > NOW then
    redis.call('ZADD', K_LATER, num(row, 'nb'), member(p, t))
  else
    redis.call('ZADD', k_ready(row.pool, p), score(num(row, 'prio'), num(row, 'path'), num(row, 'n')), t)
  end
end

-- Every edge of a task holds: it is ready, or the daemon has a gate to judge first.
local function arrive(p, t, row)
  local cause = row_cause(row)
  if cause == nil or cause.cause == 'backoff' then
    index(p, t, row)
    return true
  end
  if cause.cause == 'gate' and (cause.gate == 'if' or cause.gate == 'for_each') then
    redis.call('RPUSH', k_gates(p), t)
    redis.call('SADD', K_DIRTY, p)
    ring(p)
  end
  return false
end

local function unindex(p, t, row)
  redis.call('ZREM', k_ready(row.pool, p), t)
  redis.call('ZREM', K_LATER, member(p, t))
end

local function promote()
  local due = redis.call('ZRANGEBYSCORE', K_LATER, '-inf', NOW, 'LIMIT', 0, LOOK)
  for _, m in ipairs(due) do
    redis.call('ZREM', K_LATER, m)
    local p, t = split(m)
    local row = hash(k_row(p, t))
    if row and row_cause(row) == nil then
      index(p, t, row)
      sync(p, hash(k_plan(p)), row.pool)
    end
  end
end

-- The one door for a task's state. `row` is what was read; `detail` goes into the event.
local function move(p, t, row, event, detail)
  local from, to = row.st, TASKS[event][row.st]
  if from ~= to then
    redis.call('HINCRBY', k_plan(p), 'n:' .. from, -1)
    redis.call('HINCRBY', k_plan(p), 'n:' .. to, 1)
    redis.call('HSET', k_row(p, t), 'st', to, 't0', NOW)
    row.st = to
  end
  detail = detail or {}
  detail.ev, detail.task, detail.att, detail.from, detail.to = event, t, num(row, 'att'), from, to
  emit(p, detail)
end

-- Ends what belongs to the lease: slot, pool, dispatch deadline, the session's hold. Safe to call twice.
local function release(p, t, row)
  if (row.sess or '') == '' then return end
  redis.call('HINCRBY', K_USED, row.pool, -1)
  if row.pool ~= 'system' then redis.call('HINCRBY', k_plan(p), 'used', -1) end
  redis.call('SREM', k_held(row.sess), member(p, t))
  redis.call('SREM', k_live(p), t)
  redis.call('ZREM', K_DISPATCH, member(p, t))
  redis.call('HDEL', k_row(p, t), 'sess')
  row.sess = ''
end

-- A task whose bad end does not count against the plan: `continue`, a false `if`, a fallback that was not called or that
-- stands in for it, and what is skipped only because of these.
local function set_soft(p, t, row, soft)
  if soft == (row.soft == '1') then return end
  redis.call('HINCRBY', k_plan(p), 'soft', soft and 1 or -1)
  if soft then redis.call('HSET', k_row(p, t), 'soft', '1') else redis.call('HDEL', k_row(p, t), 'soft') end
  row.soft = soft and '1' or nil
end

-- The system task that closes a plan starts when everything else has ended well enough; else it is skipped.
local function close(p, plan)
  local t = plan.sys
  if not t then return false end
  local row = hash(k_row(p, t))
  if row.st ~= 'pending' or not row.g_end then return false end
  if num(plan, 'n:completed') + num(plan, 'soft') == num(plan, 'total') - 1 and plan.state ~= 'cancelling' then
    redis.call('HDEL', k_row(p, t), 'g_end')
    row.g_end = nil
    move(p, t, row, 'open', {gate = 'end'})
    index(p, t, row)
    if sync(p, hash(k_plan(p)), row.pool) then ring(p) end
    return true
  end
  redis.call('HSET', k_row(p, t), 'cause', 'the plan has failed')
  unindex(p, t, row)
  move(p, t, row, 'skip', {cause = 'the plan has failed'})
  return false
end

-- A plan whose last unfinished task has ended ends with it. Called last in a script.
local function finish(p)
  local plan = hash(k_plan(p))
  local function open()
    return num(plan, 'n:pending') + num(plan, 'n:claimed') + num(plan, 'n:running') + num(plan, 'n:verifying')
  end
  if redis.call('LLEN', k_settle(p)) > 0 then return end
  if open() == 1 and (close(p, plan) or true) then plan = hash(k_plan(p)) end
  if open() > 0 then return end
  local event = 'fail'
  if plan.state == 'cancelling' then event = 'cancelled'
  elseif num(plan, 'n:completed') + num(plan, 'soft') == num(plan, 'total') then event = 'complete' end
  local to = PLANS[event][plan.state]
  if not to then return end
  redis.call('HSET', k_plan(p), 'state', to, 'ended', NOW)
  redis.call('HDEL', k_plan(p), 'reason')
  redis.call('SREM', K_ACTIVE, p)
  redis.call('SREM', K_DIRTY, p)
  for pool in string.gmatch(plan.pools, '[^,]+') do redis.call('ZREM', k_turns(pool), p) end
  emit(p, {ev = 'plan.' .. event, from = plan.state, to = to})
  ring(p)
end

-- An ended task that did not complete: its descendants are skipped by the daemon, in batches.
local function to_settle(p, t)
  redis.call('RPUSH', k_settle(p), t)
  redis.call('SADD', K_DIRTY, p)
  ring(p)
end

-- What hangs on a task: {id, when} with when v (verified), s (settled) or m (member: instance -> its template). The rows
-- are checked for type before anything is written.
local function read_next(p, t)
  local raw = redis.call('GET', k_next(p, t))
  local nexts = raw and cjson.decode(raw) or {}
  for i, n in ipairs(nexts) do
    if type(n) == 'string' then nexts[i] = {n, 'v'} end
    local is = redis.call('TYPE', k_row(p, nexts[i][1]))['ok']
    if is ~= 'hash' then return nil, k_row(p, nexts[i][1]) .. ' is ' .. is end
  end
  return nexts, nil
end

-- One edge holds.
local function hold_edge(p, n)
  if redis.call('HINCRBY', k_row(p, n), 'wait', -1) <= 0 then
    local row = hash(k_row(p, n))
    if row.st == 'pending' then arrive(p, n, row) end
  end
end

-- A `for_each` task is the sum of its instances: when the last has ended, it is completed, or failed with their cause.
local function join(p, t, row)
  if num(row, 'wait') > 0 or row.st ~= 'pending' then return end
  if not row.cn then
    move(p, t, row, 'join', {count = num(row, 'exp')})
    return true
  end
  redis.call('HSET', k_results(p, t), 'f' .. num(row, 'att'), cjson.encode({kind = 'instances', reason = row.cause}))
  set_soft(p, t, row, row.hard ~= '1')
  move(p, t, row, 'fail', {failure = {kind = 'instances', reason = row.cause}})
  to_settle(p, t)
  return false
end

-- A completed task: every edge that it satisfies, at once; also those of the task that it stands in for.
local satisfy
function satisfy(p, t, row, nexts)
  while true do
    for _, edge in ipairs(nexts) do
      local n, when = edge[1], edge[2]
      if when == 'm' then
        redis.call('HINCRBY', k_row(p, n), 'wait', -1)
        local template = hash(k_row(p, n))
        if join(p, n, template) then satisfy(p, n, template, (read_next(p, n)) or {}) end
      else
        hold_edge(p, n)
      end
    end
    if not row.called then return end
    t = row.called
    row = hash(k_row(p, t))
    nexts = {}
    for _, edge in ipairs((read_next(p, t)) or {}) do
      if edge[2] == 'v' then nexts[#nexts + 1] = edge end
    end
  end
end

-- A fallback that is not needed.
local function spare(p, t, of)
  local row = hash(k_row(p, t))
  if row.st ~= 'pending' or not row.g_fb then return end
  local cause = of .. ' did not fail'
  redis.call('HSET', k_row(p, t), 'cause', cause)
  redis.call('HDEL', k_row(p, t), 'cn', 'bh')
  set_soft(p, t, row, true)
  move(p, t, row, 'skip', {cause = cause})
  to_settle(p, t)
end

-- Fence of a worker's write. Returns nil when it holds, else a refusal.
local function fence(p, t, row, attempt, token, event)
  if not row then return refuse('not_found', 'no task ' .. t .. ' in plan ' .. p) end
  if row.att ~= attempt or (row.tok or '') ~= token or token == '' then
    return refuse('fenced', 'attempt ' .. attempt .. ' of ' .. t .. ' no longer owns it (now attempt ' ..
      (row.att or '0') .. ', ' .. row.st .. ')')
  end
  if not TASKS[event][row.st] then
    return refuse('conflict', t .. ' is ' .. row.st .. ', so ' .. event .. ' is refused', {state = row.st})
  end
  return nil
end

-- The claim. Takes the next ready task for one executor, or nothing. All scheduling rules are the predicates above.
local function claim_in_plan(p, pool, session, exec, dispatch)
  local plan = hash(k_plan(p))
  if not plan or plan_cause(p, plan, pool == 'system') then
    redis.call('ZREM', k_turns(pool), p)
    return nil
  end
  for _ = 1, LOOK do
    local t = redis.call('ZREVRANGE', k_ready(pool, p), 0, 0)[1]
    if not t then break end
    local row = hash(k_row(p, t))
    redis.call('ZREM', k_ready(pool, p), t)
    if row and row_cause(row) == nil then
      local verify = row.st == 'verifying'
      local key = k_row(p, t)
      if not verify then
        row.att = string.format('%d', num(row, 'att') + 1)
        redis.call('HSET', key, 'att', row.att)
        redis.call('HDEL', key, 'tok', 'res', 'nb')
      end
      redis.call('HSET', key, 'sess', session)
      redis.call('HINCRBY', K_USED, pool, 1)
      if pool ~= 'system' then redis.call('HINCRBY', k_plan(p), 'used', 1) end
      redis.call('SADD', k_held(session), member(p, t))
      redis.call('SADD', k_live(p), t)
      redis.call('ZADD', K_DISPATCH, NOW + dispatch, member(p, t))
      move(p, t, row, 'claim', {by = exec.name, session = session, verify = verify or nil})
      redis.call('ZADD', k_turns(pool), redis.call('INCR', R .. 'turn'), p)
      sync(p, hash(k_plan(p)), pool)
      return {plan = p, task = t, number = num(row, 'n'), attempt = num(row, 'att'), session = session,
        queue = exec.queue, lingering = exec.state == 'lingering', verify_only = verify,
        sweep = num(row, 'swp') > 0}
    end
  end
  sync(p, plan, pool)
  return nil
end

local function claim_one(session, exec, only, dispatch)
  local pool = exec.pool
  if pool_cause(pool) then return nil end
  local filter = exec.plan ~= '' and exec.plan or only
  if filter ~= '' then
    if not redis.call('ZSCORE', k_turns(pool), filter) then return nil end
    return claim_in_plan(filter, pool, session, exec, dispatch)
  end
  for _, p in ipairs(redis.call('ZRANGE', k_turns(pool), 0, LOOK - 1)) do
    local got = claim_in_plan(p, pool, session, exec, dispatch)
    if got then return got end
  end
  return nil
end

-- Claims that a session holds and has not started: what a repeated call returns instead of claiming again.
local function unstarted(session, exec)
  local out = {}
  for _, m in ipairs(redis.call('SMEMBERS', k_held(session))) do
    if redis.call('ZSCORE', K_DISPATCH, m) then
      local p, t = split(m)
      local row = hash(k_row(p, t))
      out[#out + 1] = {plan = p, task = t, number = num(row, 'n'), attempt = num(row, 'att'), session = session,
        queue = exec.queue, lingering = true, verify_only = row.st == 'verifying', sweep = num(row, 'swp') > 0}
    end
  end
  return out
end

local function not_idle(session, exec, state)
  redis.call('ZREM', k_idle(exec.pool, exec.plan), session)
  redis.call('HSET', k_exec(session), 'state', state)
end

local function next_claims(session, count, dispatch)
  local exec = hash(k_exec(session))
  if not exec or exec.state == 'draining' then return {} end
  exec.plan = exec.plan or ''
  exec.state = 'lingering'
  promote()
  local out = unstarted(session, exec)
  while #out < count do
    local got = claim_one(session, exec, '', dispatch)
    if not got then break end
    out[#out + 1] = got
  end
  return out
end

-- How a charged attempt ends: again while the ledger allows it, else failed. One rule for workers and recovery.
local function retry_or_fail(p, t, row, failure, again, jitter)
  local allowed = num(row, 'max') + 1
  local event = 'fail'
  if again and num(row, 'charged') < allowed then event = 'retry' end
  redis.call('HSET', k_results(p, t), 'f' .. num(row, 'att'), failure)
  release(p, t, row)
  local key = k_row(p, t)
  redis.call('HDEL', key, 'vt')
  row.vt = nil
  local detail = {failure = cjson.decode(failure), charged = num(row, 'charged'), allowed = allowed}
  if event == 'retry' then
    local pause = math.min(num(row, 'bo') * 2 ^ math.max(num(row, 'charged') - 1, 0), num(row, 'bomax'))
    pause = math.floor(pause * (0.5 + 0.5 * jitter))
    row.nb = NOW + pause
    redis.call('HSET', key, 'nb', row.nb)
    detail.not_before = row.nb
  end
  if event == 'fail' then set_soft(p, t, row, row.cont == '1' or row.fb ~= nil) end
  move(p, t, row, event, detail)
  if event == 'retry' then
    index(p, t, row)
    sync_all(p)
    return 'pending'
  end
  to_settle(p, t)
  sync_all(p)
  return 'failed'
end

-- An attempt given back uncharged. `limit` > 0 counts against the number of such returns.
local function give_back(p, t, row, reason, limit, by)
  local key = k_row(p, t)
  local count = num(row, 'hb') + (limit > 0 and 1 or 0)
  redis.call('HSET', key, 'hb', count)
  if row.st == 'running' then
    redis.call('HINCRBY', key, 'charged', -1)
    row.charged = string.format('%d', num(row, 'charged') - 1)
  end
  if limit > 0 and count >= limit then
    return retry_or_fail(p, t, row, cjson.encode({kind = 'infrastructure', reason = reason .. ', ' .. count ..
      ' times'}), false, 0)
  end
  release(p, t, row)
  move(p, t, row, 'hand_back', {reason = reason, by = by})
  index(p, t, row)
  sync_all(p)
  return 'pending'
end

-- Verification that lost its owner goes back into the ready index as verify work; the agent is not run again.
-- `limit` > 0 counts, as in give_back: a check that kills its own worker must not be tried for ever. At the limit the
-- attempt counts as lost, and the retry ledger rules: workers that die of something else must not fail the task.
local function take_over(p, t, row, by, reason, limit)
  local count = num(row, 'hb') + (limit > 0 and 1 or 0)
  if limit > 0 and count >= limit then
    redis.call('HSET', k_row(p, t), 'hb', 0, 'swp', 1)
    retry_or_fail(p, t, row, cjson.encode({kind = 'lost', reason = reason .. ', ' .. count .. ' times'}), true, 0)
    return
  end
  redis.call('HSET', k_row(p, t), 'hb', count)
  release(p, t, row)
  redis.call('HSET', k_row(p, t), 'vt', '1')
  redis.call('HDEL', k_row(p, t), 'tok')
  row.vt = '1'
  move(p, t, row, 'takeover', {by = by})
  index(p, t, row)
  sync_all(p)
end

local function end_cancelled(p, t, row, by)
  release(p, t, row)
  redis.call('HDEL', k_row(p, t), 'cancel', 'vt')
  move(p, t, row, 'cancelled', {by = by})
  to_settle(p, t)
  sync_all(p)
end
