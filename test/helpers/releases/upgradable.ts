import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { type KeptState, runningState } from '../../../src/agent/reports/status-file.ts'
import { cleanEnv, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { handOut } from '../servers/hand-out.ts'
import type { TestServer } from '../servers/server.ts'
import { until } from '../until.ts'
import type { OwnBuild } from './build.ts'
import { ownArch, type ReleaseKey, signedBy } from './release-key.ts'

/** An agent of a build, started as by hand. */
export interface Upgradable {
  readonly hostname: string
  readonly dataDir: string
  /** The started process; after an upgrade it may wait for another process that is the agent. */
  readonly pid: number
  /** Its own state; null if none runs. */
  state(): KeptState | null
  /** Target of `releases/current`; null if it does not exist. */
  current(): string | null
  /** Starts it again, after its end. */
  start(): void
  /** Kills the started process and the agent with SIGKILL. */
  kill(): Promise<void>
}

/** Restarts it whenever it ends, until SIGTERM, as systemd does. */
const supervisor = `trap 'kill $agent; wait $agent; exit' TERM
while :; do "$@" & agent=$!; wait $agent; sleep 0.5; done`

function supervise(words: readonly string[], env: Record<string, string>) {
  const child = spawn('sh', ['-c', supervisor, 'sh', process.execPath, ...words], {
    env: { ...env, INVOCATION_ID: 'test' },
    stdio: 'ignore',
  })
  const done = once(child, 'close')
  return { child, done }
}

export async function upgradableAgent(
  t: ExecutionContext,
  server: Pick<TestServer, 'url' | 'data'>,
  build: Pick<OwnBuild, 'program'>,
  hostname: string,
  more: readonly string[] = [],
  { supervised = false } = {},
): Promise<Upgradable> {
  const { token } = await server.data('POST', '/api/enrollment-tokens', {})
  const home = temporaryDirectory(t)
  const given = more.indexOf('--data-dir')
  const dataDir = (given < 0 ? undefined : more[given + 1]) ?? join(home, 'agent')
  const env = cleanEnv(home, { RSM_AGENT_ENROLL_TOKEN: token, RSM_AGENT_LOG_LEVEL: 'WARN' })
  const words = ['agent', 'run', '--url', server.url, '--hostname', hostname, ...more]
  if (given < 0) words.push('--data-dir', dataDir)
  const start = () =>
    supervised ? supervise([build.program, ...words], env) : startRsm(words, env, { program: build.program })
  let running: { child: ChildProcess; done: Promise<unknown> } = start()
  const state = () => runningState(dataDir)
  const end = async (signal: NodeJS.Signals) => {
    const pid = state()?.pid
    running.child.kill(signal)
    if (signal === 'SIGKILL' && pid !== undefined)
      try {
        process.kill(pid, signal)
      } catch {
        // The agent was the started process itself.
      }
    await running.done
  }
  t.teardown(async () => {
    const slow = setTimeout(() => void end('SIGKILL'), 20_000)
    await end('SIGTERM')
    clearTimeout(slow)
  })
  await until(`${hostname} is linked`, () => state()?.linked === true)
  return {
    hostname,
    dataDir,
    get pid() {
      return running.child.pid ?? 0
    },
    state,
    current() {
      try {
        return readlinkSync(join(dataDir, 'releases/current'))
      } catch {
        return null
      }
    },
    start() {
      running = start()
    },
    kill: () => end('SIGKILL'),
  }
}

/** Adds a signed build to the server's releases. */
export const release = (
  server: { readonly dataDir: string },
  key: ReleaseKey,
  { version, executable }: OwnBuild,
) => handOut(server, executable, `rsm-linux-${ownArch}`, signedBy(key, version, executable))
