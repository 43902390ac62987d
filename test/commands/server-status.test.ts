import test, { type ExecutionContext } from 'ava'
import { envelope, startFakeServer } from '../fixtures/fake-server.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'

const away = 'the store cannot be reached just now: connect ECONNREFUSED 10.0.0.5:5432'
const reasons = ['PostgreSQL cannot be reached']
const message = 'The server does not accept work just now: PostgreSQL cannot be reached'
const standing = { name: 'a', leaseSeconds: 4.2, pools: {}, hints: {} }

/** Runs `rsm server status --url` with a server that has lost its store and answers `/api/ready` with `ready`. */
async function saidOf(t: ExecutionContext, ready: object, status = 503): Promise<string> {
  const server = await startFakeServer(t, {
    'GET /api/server/status': (_, response) => envelope(response, 503, { message: away }),
    'GET /api/ready': (_, response) => envelope(response, status, ready),
  })
  const env = cleanEnv(temporaryDirectory(t), { RSM_TOKEN: 's' })
  const { exit, stderr } = await runRsm(['server', 'status', '--url', server.url], env)
  t.is(exit, 6, stderr)
  return stderr
}

test('server status over the network shows name, reason and lease of a server without its store', async (t) => {
  t.regex(
    await saidOf(t, { message, data: { status: 'DOWN', reasons, server: standing } }),
    /^rsm: server a does not accept work: PostgreSQL cannot be reached \(lease: 4\.2 s\)\n {5}for more, run rsm server status --data-dir DIR on its machine\n/,
  )
})

test("server status over the network prints an older server's message, or the error if the server is ready again", async (t) => {
  t.regex(
    await saidOf(t, { message }),
    /^rsm: the server does not accept work: The server does not accept work just now/,
  )
  t.regex(
    await saidOf(t, { message: 'OK', data: { status: 'UP', server: standing } }, 200),
    /^rsm: the store cannot be reached just now/,
  )
})
