import test, { type ExecutionContext } from 'ava'
import { envelope, startFakeServer } from '../fixtures/fake-server.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { startTestServer } from '../helpers/servers/server.ts'

const exec = ['exec', '-w', 'web1', '--limit', 'memory=64M', '--', 'true']

/** Runs `words` with a server of this version that refuses a task because of an unknown field. */
async function refusedBy(t: ExecutionContext, version: string | null, words: string[], errors: object[]) {
  const info = () => ({ version, serverTime: '2026-03-02T09:30:12.502Z', heartbeatInterval: 30 })
  const server = await startFakeServer(t, {
    'POST /api/tasks': (_, response) =>
      envelope(response, 400, { message: 'Validation failed: limits: unknown field', errors }),
    ...(version === null ? {} : { 'GET /api/server': info }),
    'GET /api/clusters': (_, response) => envelope(response, 404, { message: 'No such path: /api/clusters' }),
  })
  const { exit, stderr } = await runRsm(
    words,
    cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 's' }),
  )
  return { exit, stderr }
}

const unknown = [{ field: 'limits', message: 'unknown field' }]

test('A17 a field that an older server does not know is reported with both versions', async (t) => {
  const { exit, stderr } = await refusedBy(t, '0.0.9', exec, unknown)
  t.is(exit, 2)
  t.regex(
    stderr,
    /^rsm: the server is older \(0\.0\.9\) and does not know limits\n {5}this is rsm \d+\.\d+\.\d+: upgrade/,
  )
  t.notRegex(stderr, /unknown field/)
})

test('A17 an older server without a version, or without a path, is reported as older', async (t) => {
  t.regex(
    (await refusedBy(t, null, exec, unknown)).stderr,
    /^rsm: the server is older and does not know limits\n/,
  )
  const path = await refusedBy(t, '0.0.9', ['clusters', 'list'], [])
  t.is(path.exit, 5)
  t.regex(path.stderr, /^rsm: the server is older \(0\.0\.9\) and does not know \/api\/clusters\n/)
})

test('A17 errors of a newer server, errors with other faults and errors of rsm api are reported unchanged', async (t) => {
  t.regex((await refusedBy(t, '99.0.0', exec, unknown)).stderr, /limits: unknown field/)
  const more = [...unknown, { field: 'timeout', message: 'must be of type number' }]
  t.notRegex((await refusedBy(t, '0.0.9', exec, more)).stderr, /older/)
  t.notRegex((await refusedBy(t, '0.0.9', ['api', '/api/clusters'], [])).stderr, /older/)
  const server = await startTestServer(t)
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: server.token })
  t.regex(
    (await runRsm(['exec', '-g', 'reachable', 'true'], env)).stderr,
    /^rsm: no such cluster: reachable\n/,
  )
})

test('A17 hosts join with a server without join strings prints the older line', async (t) => {
  const asked: string[][] = []
  const server = await startFakeServer(t, {
    'POST /api/enrollment-tokens': (request, response) => {
      const fields = Object.keys(request.body as object)
      asked.push(fields)
      const errors = fields
        .filter((field) => field === 'url')
        .map((field) => ({ field, message: 'unknown field' }))
      if (errors.length > 0) return envelope(response, 400, { message: 'Validation failed', errors })
      return { id: 1, token: 'rsm_enr_x', maxUses: 1, expiresAt: '2026-03-03T09:30:00.000Z' }
    },
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 's' })
  const { exit, stdout } = await runRsm(['hosts', 'join', '--max-uses', '1'], env)
  t.is(exit, 0)
  t.true(stdout.includes('rsm_enr_x') && stdout.includes(server.url), stdout)
  t.deepEqual(asked, [['maxUses', 'url'], ['maxUses']])
})
