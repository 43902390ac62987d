import test, { type ExecutionContext } from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import type { Log } from '../../../src/disk/log.ts'
import { createAuditOutbox } from '../../../src/server/audit/outbox.ts'
import { systemActor } from '../../../src/server/storage/audit-entry.ts'
import type { AuditEvent } from '../../../src/server/storage/ports/audit-log.ts'

const event = (action: string): AuditEvent => ({
  actor: systemActor,
  ip: null,
  action,
  object: null,
  outcome: 'SUCCESS',
  detail: { hosts: 3 },
})

/** An outbox in front of a log whose failures the test controls. */
function open(t: ExecutionContext) {
  const state = { fails: 0, refusal: null as string | null, tries: 0, now: 1_000_000 }
  const written: AuditEvent[] = []
  const said: { level: string; fields: object; text: string }[] = []
  const note = (level: string) => (fields: object, text: string) => void said.push({ level, fields, text })
  const outbox = createAuditOutbox({
    audit: {
      async append(given) {
        state.tries++
        if (state.fails-- > 0) throw new RsmError('unavailable', 'the store is unreachable')
        written.push(given)
        return given as never
      },
      get refusal() {
        return state.refusal
      },
    },
    clock: { now: () => state.now },
    log: { warn: note('warn'), error: note('error') } as unknown as Pick<Log, 'warn' | 'error'>,
  })
  t.teardown(() => outbox.close())
  return { outbox, state, written, said }
}

test('an entry that the log rejected is written later, with the time of the change', async (t) => {
  const { outbox, state, written, said } = open(t)
  state.fails = 2
  for (const action of ['host.create', 'host.remove'])
    await t.throwsAsync(outbox.append(event(action)), { message: 'the store is unreachable' })
  state.now += 60_000
  await outbox.append(event('host.update'))
  await outbox.flush()
  await outbox.flush()
  t.deepEqual(
    written.map(({ action, at, detail }) => [action, at, detail]),
    [
      ['host.update', '1970-01-01T00:17:40.000Z', { hosts: 3 }],
      ['host.create', '1970-01-01T00:16:40.000Z', { late: true, hosts: 3 }],
      ['host.remove', '1970-01-01T00:16:40.000Z', { late: true, hosts: 3 }],
    ],
  )
  t.is(said.length, 2)
  t.like(said[0], {
    level: 'warn',
    fields: { entry: { action: 'host.create' }, reason: 'the store is unreachable' },
  })
})

test('a failed retry keeps the entry, and no retry happens while the log refuses entries', async (t) => {
  const { outbox, state, written } = open(t)
  state.fails = 2
  await t.throwsAsync(outbox.append(event('host.create')))
  await outbox.flush()
  t.is(state.tries, 2)
  state.refusal = 'the disk is full'
  await outbox.flush()
  t.is(state.tries, 2)
  state.refusal = null
  await outbox.flush()
  t.like(written, [{ action: 'host.create' }])
})

test("a stop writes pending entries, or reports that only the server's own log has them", async (t) => {
  const taken = open(t)
  taken.state.fails = 1
  await t.throwsAsync(taken.outbox.append(event('host.create')))
  await taken.outbox.close()
  t.like(taken.written, [{ action: 'host.create' }])
  t.is(taken.said.length, 1)
  const lost = open(t)
  lost.state.fails = 9
  await t.throwsAsync(lost.outbox.append(event('host.create')))
  await lost.outbox.close()
  t.like(lost.said.at(-1), {
    level: 'error',
    fields: { entries: 1 },
    text: 'audit entries were not written before the stop; this log has them',
  })
})
