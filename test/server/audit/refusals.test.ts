import test from 'ava'
import type { AuditEntry } from '../../../src/core/protocol/http/audit.ts'
import type { AuditEvent } from '../../../src/server/audit/event.ts'
import { createRefusals } from '../../../src/server/audit/refusals.ts'
import { event } from '../../helpers/audit-log.ts'

function start() {
  let now = 0
  const written: AuditEvent[] = []
  const append = async (given: AuditEvent) => {
    written.push(given)
    return given as AuditEntry
  }
  const refusals = createRefusals(append, { now: () => now, monotonic: () => now })
  const pass = (milliseconds: number) => {
    now += milliseconds
    return refusals.sweep()
  }
  return { written, refusals, pass }
}

const refused = (ip: string) => event('access.refuse', { ip, outcome: 'REFUSED', detail: { status: 401 } })

test('of a flood 60 refusals a minute are written singly, the rest as one entry with their count', async (t) => {
  const { written, refusals, pass } = start()
  t.teardown(() => refusals.close())
  for (let at = 0; at < 1000; at++) await refusals.note('10.0.0.1', refused('10.0.0.1'))
  await refusals.note('10.0.0.2', refused('10.0.0.2'))
  t.is(written.length, 61)
  await pass(59_000)
  t.is(written.length, 61)
  await pass(1000)
  t.is(written.length, 62)
  t.like(written.at(-1), { ip: '10.0.0.1', action: 'access.refuse', detail: { status: 401, folded: 940 } })
  await refusals.note('10.0.0.1', refused('10.0.0.1'))
  t.is(written.length, 63)
})

test('a flood from many addresses is bounded in memory: what is beyond shares one count', async (t) => {
  const { written, refusals, pass } = start()
  t.teardown(() => refusals.close())
  for (let at = 0; at < 20_000; at++) await refusals.note(`a${at}`, refused(`a${at}`))
  t.is(written.length, 10_060)
  await pass(60_000)
  t.is(written.length, 10_061)
  t.like(written.at(-1), { ip: null, detail: { folded: 9940 } })
})

test('counts that are open when the server stops are written', async (t) => {
  const { written, refusals } = start()
  for (let at = 0; at < 70; at++) await refusals.note('10.0.0.1', refused('10.0.0.1'))
  await refusals.close()
  t.like(written.at(-1), { detail: { folded: 10 } })
})
