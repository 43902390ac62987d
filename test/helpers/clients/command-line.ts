import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { ExecutionContext } from 'ava'
import {
  cleanEnv,
  type Line,
  type Ran,
  type RanLine,
  runRsm,
  temporaryDirectory,
} from '../../fixtures/rsm.ts'
import type { TestServer } from '../servers/server.ts'

const program = fileURLToPath(new URL('../../fixtures/command-lines.js', import.meta.url))

/** Runs `rsm` against a server, with a token and without a terminal. */
export type CommandLine = (
  argv: readonly string[],
  options?: { input?: string; env?: Record<string, string> },
) => Promise<Ran>

let child: { process: ChildProcess; gone: Promise<never> } | undefined
let isBusy = false

/** One process per test file that runs many command lines, without stdin; it ends with the file. */
function started() {
  if (child) return child
  const process = fork(program, {
    env: cleanEnv('/'),
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const gone = once(process, 'exit').then(([code, signal]) => {
    child = undefined
    throw new Error(`the process of command lines ended: ${code ?? signal}`)
  })
  gone.catch(() => {})
  child = { process, gone }
  return child
}

async function runShared(line: Line): Promise<RanLine> {
  isBusy = true
  const { process, gone } = started()
  process.ref()
  process.channel?.ref()
  process.send(line)
  const [ran] = await Promise.race([once(process, 'message'), gone]).finally(() => {
    isBusy = false
    // The test file may end although this process waits for more.
    process.unref()
    process.channel?.unref()
  })
  return ran
}

/** Commands that need a process of their own: they follow, handle signals or start other programs. */
const ownProcess = new Set([
  'agent run',
  'api',
  'cp',
  'events',
  'exec',
  'hosts join',
  'logs',
  'scripts edit',
  'terminal',
  'tui',
])
const hasOwn = (argv: readonly string[]) =>
  ownProcess.has(argv[0] ?? '') || ownProcess.has(argv.slice(0, 2).join(' '))

export function commandLine(
  t: Pick<ExecutionContext, 'teardown'>,
  server: TestServer,
  token = server.token,
): CommandLine {
  const own = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: token })
  return async (argv, { input = '', env = {} } = {}) =>
    input !== '' || isBusy || hasOwn(argv) || 'TZ' in env
      ? runRsm(argv, { ...own, ...env }, input)
      : { signal: null, ...(await runShared({ argv, env: { ...own, ...env } })) }
}

/** Runs command lines sequentially in the shared process, without a terminal; returns results in their order. */
export async function runLines(
  t: Pick<ExecutionContext, 'teardown'>,
  server: Pick<TestServer, 'url' | 'token'>,
  lines: readonly Line[],
): Promise<RanLine[]> {
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: server.token })
  const ran: RanLine[] = []
  for (const line of lines) ran.push(await runShared({ ...line, env: { ...env, ...line.env } }))
  return ran
}

/** Creates a VIEWER; returns the user's token. */
export async function viewerToken(server: TestServer): Promise<string> {
  const login = { username: 'viewer', password: 'a password for viewers' }
  await server.data('POST', '/api/users', { ...login, role: 'VIEWER' })
  return (await server.data('POST', '/api/auth/login', login)).token
}
