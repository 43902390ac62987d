import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { ExecutionContext } from 'ava'
import { cleanEnv, type Ran, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import type { TestServer } from '../servers/server.ts'

const execute = promisify(execFile)
const program = fileURLToPath(new URL('../../fixtures/command-lines.js', import.meta.url))

/** Runs `rsm` against a server, as whoever holds the token, without a terminal. */
export type CommandLine = (
  argv: readonly string[],
  options?: { input?: string; env?: Record<string, string> },
) => Promise<Ran>

export function commandLine(
  t: Pick<ExecutionContext, 'teardown'>,
  server: TestServer,
  token = server.token,
): CommandLine {
  const home = temporaryDirectory(t)
  return (argv, { input = '', env = {} } = {}) =>
    runRsm(argv, cleanEnv(home, { RSM_URL: server.url, RSM_TOKEN: token, ...env }), input)
}

/** A command line, and what stands in its environment beside the server's. */
export interface Line {
  readonly argv: readonly string[]
  readonly env?: Record<string, string>
}

/** Runs command lines one after the other in one process of their own, without a terminal; answers in their order. */
export async function runLines(
  t: Pick<ExecutionContext, 'teardown'>,
  server: Pick<TestServer, 'url' | 'token'>,
  lines: readonly Line[],
): Promise<Pick<Ran, 'exit' | 'stdout' | 'stderr'>[]> {
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: server.token })
  const { stdout } = await execute(process.execPath, [program, JSON.stringify(lines)], {
    env,
    maxBuffer: 64 * 1024 * 1024,
  })
  return JSON.parse(stdout) as Ran[]
}

/** The token of a new user who may but read. */
export async function viewerToken(server: TestServer): Promise<string> {
  const login = { username: 'viewer', password: 'a password for viewers' }
  await server.data('POST', '/api/users', { ...login, role: 'VIEWER' })
  return (await server.data('POST', '/api/auth/login', login)).token
}
