import type { ExecutionContext } from 'ava'
import { cleanEnv, type Ran, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import type { TestServer } from './server.ts'

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

/** The token of a new user who may but read. */
export async function viewerToken(server: TestServer): Promise<string> {
  const login = { username: 'viewer', password: 'a password for viewers' }
  await server.data('POST', '/api/users', { ...login, role: 'VIEWER' })
  return (await server.data('POST', '/api/auth/login', login)).token
}
