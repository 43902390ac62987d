import { join, resolve } from 'node:path'
import type { ExecutionContext } from 'ava'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { said } from '../programs/said.ts'

const password = 'a password for joining'

/** A stand-in for the executable that a server hands out: it runs this checkout. */
export const executable = `#!/bin/sh\nexec '${process.execPath}' '${resolve('bin/run.js')}' "$@"\n`
/** The name in `/dl` of the executable for this machine. */
export const executableName = process.arch === 'arm64' ? 'rsm-linux-arm64' : 'rsm-linux-x64'

/** A self-signed server of the real binary, and the environment of a user who is logged in to it. */
export async function startSelfSigned(t: ExecutionContext, variables: Record<string, string> = {}) {
  const home = temporaryDirectory(t)
  const env = cleanEnv(home, { RSM_ADMIN_PASSWORD: password, RSM_LOG_LEVEL: 'ERROR', ...variables })
  const dataDir = join(home, 'server')
  const start = async (port = '0') => {
    const argv = ['server', 'start', '--port', port, '--tls-self-signed', '--data-dir', dataDir, '--json']
    const running = startRsm(argv, env)
    t.teardown(async () => {
      running.child.kill()
      await running.done
    })
    const told = JSON.parse(await said(running.child, '}\n')) as { url: string; fingerprint: string }
    return { ...running, ...told }
  }
  const server = await start()
  const { url, fingerprint } = server
  const login = ['login', url, '-u', 'admin', '--password-stdin', '--tls-fingerprint', fingerprint]
  t.is((await runRsm(login, env, password)).exit, 0)
  return { env, home, url, dataDir, server, start }
}
