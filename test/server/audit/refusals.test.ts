import test, { type ExecutionContext } from 'ava'
import type { AuditEntry } from '../../../src/core/audit.ts'
import { createRefusals } from '../../../src/server/audit/refusals.ts'
import type { AuditEvent } from '../../../src/server/storage/ports/audit-log.ts'
import { event } from '../../helpers/audit/audit-log.ts'

function start(t: ExecutionContext) {
  let now = 0
  const written: AuditEvent[] = []
  const append = async (given: AuditEvent) => {
    written.push(given)
    return given as AuditEntry
  }
  const refusals = createRefusals(append, { now: () => now, monotonic: () => now })
  t.teardown(() => refusals.close())
  const pass = (milliseconds: number) => {
    now += milliseconds
    return refusals.sweep()
  }
  const note = async (given: AuditEvent, times = 1, source = given.ip ?? 'unknown') => {
    for (let at = 0; at < times; at++) await refusals.note(source, given)
  }
  return { written, refusals, pass, note }
}

const anonymous = { type: 'anonymous', id: null, name: null, tokenId: null } as const
const refused = (ip: string) =>
  event('access.refuse', { ip, actor: anonymous, outcome: 'REFUSED', detail: { status: 401 } })
const login = (ip: string, name: string) =>
  event('user.login', {
    ip,
    actor: anonymous,
    object: { type: 'user', id: null, name },
    outcome: 'REFUSED',
    detail: { status: 401 },
  })
const deletion = (ip: string, user: string) =>
  event('user.delete', {
    ip,
    actor: { type: 'user', id: 2, name: user, tokenId: 3 },
    object: { type: 'user', id: 1, name: 'admin' },
    outcome: 'REFUSED',
    detail: { status: 403 },
  })

test('60 refusals a minute are written one by one, the rest as one entry with their count', async (t) => {
  const { written, note, pass } = start(t)
  await note(refused('10.0.0.1'), 1000)
  await note(refused('10.0.0.2'))
  t.is(written.length, 61)
  await pass(59_000)
  t.is(written.length, 61)
  await pass(1000)
  t.is(written.length, 62)
  t.like(written.at(-1), { ip: '10.0.0.1', action: 'access.refuse', detail: { status: 401, folded: 940 } })
  await note(refused('10.0.0.1'))
  t.is(written.length, 63)
})

test('a flood of calls without a token hides no refused logins or operations from the same address', async (t) => {
  const { written, note } = start(t)
  await note(refused('10.0.0.1'), 1000)
  await note(login('10.0.0.1', 'admin'), 8)
  await note(deletion('10.0.0.1', 'vic'))
  t.is(written.filter(({ action }) => action === 'user.login').length, 8)
  t.is(written.filter(({ action }) => action === 'user.delete').length, 1)
})

test('folded refusals are counted separately by action, caller and object', async (t) => {
  const { written, note, pass } = start(t)
  await note(login('10.0.0.1', 'eve'), 60)
  await note(login('10.0.0.1', 'admin'), 5)
  await note(login('10.0.0.1', 'eve'), 7)
  await note(deletion('10.0.0.1', 'eve'), 60)
  await note(deletion('10.0.0.1', 'vic'), 2)
  t.is(written.length, 120)
  await pass(60_000)
  t.deepEqual(
    written
      .slice(120)
      .map(({ action, actor, object, detail }) => [action, actor.name, object?.name, detail['folded']]),
    [
      ['user.login', null, 'admin', 5],
      ['user.login', null, 'eve', 7],
      ['user.delete', 'vic', 'admin', 2],
    ],
  )
})

test('a flood of changing names from one address is bounded: the excess is counted by action alone', async (t) => {
  const { written, note, pass } = start(t)
  for (let at = 0; at < 500; at++) await note(login('10.0.0.1', `name${at}`))
  await note(login('10.0.0.2', 'admin'))
  t.is(written.length, 61)
  await pass(60_000)
  t.is(written.length, 61 + 60 + 1)
  t.like(written.at(-1), {
    action: 'user.login',
    actor: { type: 'system' },
    ip: null,
    object: null,
    detail: { mixed: true, folded: 380 },
  })
})

test('a flood from many addresses is bounded on disk and in memory', async (t) => {
  const { written, note, pass } = start(t)
  for (let at = 0; at < 20_000; at++) await note(refused(`10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`))
  t.is(written.length, 600)
  await note(login('192.0.2.1', 'admin'))
  t.is(written.at(-1)?.action, 'user.login')
  await pass(60_000)
  const folded = written.slice(601)
  t.is(folded.length, 1001)
  t.is(
    folded.reduce((sum, { detail }) => sum + Number(detail['folded']), 0),
    19_400,
  )
  t.like(folded.at(-1), { ip: null, detail: { mixed: true } })
})

test('pending refusals are shortened first, so that megabytes of a body are not kept in memory', async (t) => {
  const { written, note, pass } = start(t)
  const huge = 'x'.repeat(1_000_000)
  await note(login('10.0.0.1', 'eve'), 60)
  await note(login('10.0.0.1', `${huge}1`))
  await note(login('10.0.0.1', `${huge}2`))
  await pass(60_000)
  t.is(written.length, 61)
  t.is(written[60]?.object?.name?.length, 1025)
  t.like(written[60], { at: '1970-01-01T00:01:00.000Z', detail: { folded: 2 } })
})

test('addresses of one IPv6 /64 are one source, and an IPv4-mapped address equals its IPv4 address', async (t) => {
  const { written, note } = start(t)
  for (let at = 0; at < 100; at++) await note(refused(`2001:db8::${(at + 1).toString(16)}`))
  await note(refused('2001:0db8:0:0:ffff::1'), 10)
  await note(refused('2001:db8:0::0:9.9.9.9'), 10)
  t.is(written.length, 60)
  await note(refused('2001:db8:0:1::1'))
  t.is(written.length, 61)
  await note(refused('10.0.0.1'), 40)
  await note(refused('::ffff:10.0.0.1'), 40)
  t.is(written.length, 121)
})

test('open counts are written when the server stops', async (t) => {
  const { written, note, refusals } = start(t)
  await note(refused('10.0.0.1'), 70)
  await refusals.close()
  t.like(written.at(-1), { detail: { folded: 10 } })
})
