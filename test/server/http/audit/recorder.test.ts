import test, { type ExecutionContext } from 'ava'
import type { AuditEntry } from '../../../../src/core/audit.ts'
import { RsmError } from '../../../../src/core/errors.ts'
import { systemClock } from '../../../../src/disk/clock.ts'
import { createLog } from '../../../../src/disk/log.ts'
import { createRefusals } from '../../../../src/server/audit/refusals.ts'
import { buildApp } from '../../../../src/server/http/app.ts'
import { recordRequests } from '../../../../src/server/http/audit/recorder.ts'
import { operation } from '../../../../src/server/http/operation.ts'
import type { AuditEvent, AuditLog } from '../../../../src/server/storage/ports/audit-log.ts'

/** An application with one audited and one other operation, on a log whose disk the test controls. */
function start(t: ExecutionContext) {
  const written: AuditEvent[] = []
  const disk = { refusal: null as string | null, fails: false, carriedOut: 0 }
  const log = {
    async append(event: AuditEvent) {
      if (disk.fails || disk.refusal !== null) throw new RsmError('unavailable', 'the disk is full')
      written.push(event)
      return event as AuditEntry
    },
    get refusal() {
      return disk.refusal
    },
  } as unknown as AuditLog
  const refusals = createRefusals((event) => log.append(event), systemClock)
  const store = { get: async () => undefined } as never
  const credentials = async () => undefined
  const app = buildApp(
    { store, credentials, log: createLog('ERROR'), accepting: () => true, answered: () => undefined },
    (instance) => {
      recordRequests(instance, { log, refusals, store })
      const open = { tag: 'hosts', summary: '', allow: { open: true } } as const
      const audit = { action: 'host.create', object: 'host' } as const
      instance.post('/change', operation({ ...open, id: 'change', audit }), () => {
        disk.carriedOut++
        return { id: 7, name: 'web7' }
      })
      instance.post('/conflict', operation({ ...open, id: 'conflict', audit }), () => {
        throw new RsmError('conflict', 'it is taken')
      })
      instance.get('/closed', operation({ ...open, id: 'closed', allow: { users: 'read' } }), () => ({}))
    },
  )
  t.teardown(async () => {
    await refusals.close()
    await app.close()
  })
  const call = async (method: 'GET' | 'POST', url: string) => {
    const { statusCode, payload, headers } = await app.inject({ method, url })
    return { status: statusCode, body: JSON.parse(payload), headers }
  }
  return { written, disk, call }
}

test('a change whose entry could not be written is answered with a 503 that says it was carried out', async (t) => {
  const { disk, call } = start(t)
  disk.fails = true
  const { status, body, headers } = await call('POST', '/change')
  t.is(status, 503)
  t.is(body.message, 'POST /change was carried out, but its entry in the audit log could not be written')
  t.is(body.data, undefined)
  t.is(headers['retry-after'], '5')
  t.is(disk.carriedOut, 1)
})

test('while the log refuses entries, an audited operation is refused before it changes anything', async (t) => {
  const { disk, call, written } = start(t)
  disk.refusal = 'the disk of the audit log is full'
  const { status, body } = await call('POST', '/change')
  t.deepEqual([status, body.message, disk.carriedOut], [503, 'the disk of the audit log is full', 0])
  disk.refusal = null
  t.is((await call('POST', '/change')).status, 200)
  t.like(written, [{ action: 'host.create', outcome: 'SUCCESS', object: { id: 7, name: 'web7' } }])
})

test('an answer that changed nothing is unaffected if its entry cannot be written', async (t) => {
  const { disk, call } = start(t)
  disk.fails = true
  t.is((await call('POST', '/conflict')).status, 409)
  t.is((await call('GET', '/closed')).status, 401)
})

test('60 refused and 60 failed calls of a flood are written one by one, and every call is answered', async (t) => {
  const { call, written } = start(t)
  for (let at = 0; at < 140; at++)
    t.is((await call(at % 2 ? 'GET' : 'POST', at % 2 ? '/closed' : '/conflict')).status, at % 2 ? 401 : 409)
  t.is(written.length, 120)
})
