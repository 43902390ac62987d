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

/** Runs `rsm` against a server, as whoever holds the token, without a terminal. */
export type CommandLine = (
  argv: readonly string[],
  options?: { input?: string; env?: Record<string, string> },
) => Promise<Ran>

/** One process for many command lines, started with the first; they have no stdin. */
function sharedProcess(t: Pick<ExecutionContext, 'teardown'>, env: Record<string, string>) {
  let child: { process: ChildProcess; gone: Promise<never> } | undefined
  let isBusy = false
  t.teardown(() => child?.process.kill('SIGKILL'))
  const started = () => {
    if (child) return child
    const process = fork(program, { env, execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    const gone = once(process, 'exit').then(([code, signal]) => {
      child = undefined
      throw new Error(`the process of command lines ended: ${code ?? signal}`)
    })
    gone.catch(() => {})
    child = { process, gone }
    return child
  }
  return {
    get isBusy() {
      return isBusy
    },
    async run(line: Line): Promise<RanLine> {
      isBusy = true
      const { process, gone } = started()
      process.send(line)
      const [ran] = await Promise.race([once(process, 'message'), gone]).finally(() => {
        isBusy = false
      })
      return ran
    },
  }
}

/** What has to have a process of its own: it follows, listens to signals or starts other programs. */
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
  const shared = sharedProcess(t, own)
  return async (argv, { input = '', env = {} } = {}) =>
    input !== '' || shared.isBusy || hasOwn(argv) || 'TZ' in env
      ? runRsm(argv, { ...own, ...env }, input)
      : { signal: null, ...(await shared.run({ argv, env })) }
}

/** Runs command lines one after the other in one process of their own, without a terminal; answers in their order. */
export async function runLines(
  t: Pick<ExecutionContext, 'teardown'>,
  server: Pick<TestServer, 'url' | 'token'>,
  lines: readonly Line[],
): Promise<RanLine[]> {
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: server.token })
  const shared = sharedProcess(t, env)
  const ran: RanLine[] = []
  for (const line of lines) ran.push(await shared.run(line))
  return ran
}

/** The token of a new user who may but read. */
export async function viewerToken(server: TestServer): Promise<string> {
  const login = { username: 'viewer', password: 'a password for viewers' }
  await server.data('POST', '/api/users', { ...login, role: 'VIEWER' })
  return (await server.data('POST', '/api/auth/login', login)).token
}
