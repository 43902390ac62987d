import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ExecutionContext, TestFn } from 'ava'
import type { Schedule, ScheduleSlot } from '../../src/core/protocol/http/schedules.ts'
import { temporaryDirectory } from '../helpers/agents/agent.ts'
import { realAgent } from '../helpers/agents/real-agent.ts'
import { sendBytes, upload } from '../helpers/clients/files.ts'
import { task } from '../helpers/clients/tasks.ts'
import type { TestServer } from '../helpers/servers/server.ts'
import { until } from '../helpers/until.ts'

const login = { username: 'olga', password: 'long enough' }

/** Schedules with files, on a server of its own with a real agent (contract §13, §14). */
export function scheduledFilesContract(
  test: TestFn,
  name: string,
  open: (t: ExecutionContext) => Promise<TestServer>,
): void {
  test(`${name}, a schedule copies a file, even a secret one, at each slot, and gives its scripts their stdin`, async (t) => {
    const server = await open(t)
    const { hostId } = await realAgent(t, server, { hostname: 'web1' })
    const directory = await temporaryDirectory(t)
    const path = join(directory, 'f')
    const bytes = randomBytes(100_000)
    const { fileId } = await upload(server, bytes, 'secret=true')
    const copy = { fileId, path, kind: 'FILE', mode: '0640' }
    const target = { hostIds: [hostId] }
    const body = { name: 'sync', everySeconds: 1, copy, target, limitRate: 10_000_000 }
    const made: Schedule = await server.data('POST', '/api/schedules', body)
    t.like(made, { copy, script: null, scriptId: null, limitRate: 10_000_000 })
    for (let slot = 0; slot < 2; slot++) {
      await until('a slot puts the file there', () => existsSync(path))
      t.deepEqual(await readFile(path), bytes)
      t.is((await stat(path)).mode & 0o777, 0o640)
      await rm(path)
    }
    const history: ScheduleSlot[] = (await server.data('GET', `/api/schedules/${made.id}/history`)).content
    const ran = history.find(({ outcome }) => outcome === 'STARTED')
    t.like(await task(server, ran?.taskId ?? ''), { type: 'COPY', scheduleId: made.id, copy: { path } })

    const out = join(directory, 'out')
    const script = { content: `cat > ${out}.part && mv ${out}.part ${out}` }
    const patched = await server.data('PATCH', `/api/schedules/${made.id}`, { script, stdin: { fileId } })
    t.like(patched, { copy: null, script, stdin: { fileId } })
    await until('a slot reads the file', () => existsSync(out))
    t.deepEqual(await readFile(out), bytes)
    const { taskId } = await server.data('POST', `/api/schedules/${made.id}/run`)
    t.like(await task(server, taskId), { plannedAt: null, stdin: { fileId } })
  })

  test(`${name}, a schedule accepts only complete files of its owner, and only options that apply to a copy`, async (t) => {
    const server = await open(t)
    const { id } = await server.data('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
    const { fileId } = await upload(server, 'text')
    const { data: begun } = await sendBytes(server, 'POST', '/api/files')
    const copy = { fileId, path: '/srv/f', kind: 'FILE' }
    const script = { content: 'true' }
    const common = { everySeconds: 3600, target: { hostIds: [id] }, enabled: false }
    const refused = async (method: string, path: string, body: object, field: string) => {
      const { status, body: answer } = await server.api(method, path, body)
      t.is(status, 400, JSON.stringify(body))
      t.deepEqual(
        answer.errors?.map((fault) => fault.field),
        [field],
      )
    }
    for (const [more, field] of [
      [{ copy, script }, 'scriptId'],
      [{ copy: { ...copy, fileId: 'none' } }, 'copy.fileId'],
      [{ copy: { ...copy, fileId: begun.fileId } }, 'copy.fileId'],
      [{ copy: { ...copy, path: '/srv/../f' } }, 'copy.path'],
      [{ copy, params: { A: '1' } }, 'params'],
      [{ copy, secretParams: { A: '1' } }, 'secretParams'],
      [{ copy, verify: { script } }, 'verify'],
      [{ copy, stdin: { fileId } }, 'stdin'],
      [{ script, stdin: { fileId: 'none' } }, 'stdin.fileId'],
      [{ script, limitRate: 100_000 }, 'limitRate'],
    ] as const)
      await refused('POST', '/api/schedules', { ...common, name: 'refused', ...more }, field)

    const admin = server.token
    await server.data('POST', '/api/users', { ...login, role: 'OPERATOR' })
    server.token = (await server.data('POST', '/api/auth/login', login)).token
    await refused('POST', '/api/schedules', { ...common, name: 'refused', copy }, 'copy.fileId')
    const { fileId: hers } = await upload(server, 'hers')
    const sync = { ...common, name: 'sync', copy: { ...copy, fileId: hers } }
    const path = `/api/schedules/${(await server.data('POST', '/api/schedules', sync)).id}`
    server.token = admin
    t.like(await server.data('PATCH', path, { name: 'renamed' }), { owner: 'olga' })
    await refused('PATCH', path, { runAs: 'deploy' }, 'copy.fileId')
    // Another user may run it by hand: the file belongs to the schedule.
    t.like(await server.data('POST', `${path}/run`), { hostCount: 1 })
    t.like(await server.data('PATCH', path, { runAs: 'deploy', copy }), { owner: 'admin', copy })
  })
}
