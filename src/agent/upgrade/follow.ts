import { spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { sha256OfFile } from '../../disk/digest.ts'
import { pause } from '../../net/backoff.ts'
import { identify } from '../processes/machine.ts'
import { agentVersion } from '../reports/facts.ts'
import {
  executableOf,
  type Installed,
  isOwn,
  link,
  linkedVersion,
  type ReleaseState,
  readState,
  releasesIn,
  undo,
  writeState,
} from './installed.ts'

/** Exits of a new release before it linked, after which the previous one runs again (contract §10). */
export const maxEnds = 3
/** Environment variable that says how a release was started. It only keeps a release from starting itself. */
const startedBy = 'RSM_AGENT_STARTED_BY'
/** Exit code of a release that asks its parent to run another one. */
const anotherCode = 75
/** Milliseconds between restarts. */
const between = 1_000
/** Milliseconds before a release that was asked to end is killed. */
const longestEnd = 40_000
/** Milliseconds between a release's checks that its parent still runs. */
const checkInterval = 5_000

interface Following {
  readonly dataDir: string
  readonly argv: readonly string[]
  /** Environment variables for a release, besides those of this process. */
  readonly variables: Readonly<Record<string, string>>
  readonly stop: AbortSignal
  readonly print: (text: string) => void
  /** Runs the agent in this process; true if another release must take over. */
  readonly runHere: (orphaned: AbortSignal) => Promise<boolean>
}

/** The release that the link leads to, as recorded in the state. */
function leadsTo(releases: string, { current, former }: ReleaseState): Installed | null {
  const version = linkedVersion(releases)
  return [current, former].find((each) => version !== null && each?.version === version) ?? null
}

/** The release to run instead of the installed rsm; null if there is none. Counts starts during a trial. */
async function releaseToRun({ dataDir, print }: Following): Promise<Installed | null> {
  const releases = releasesIn(dataDir)
  const version = agentVersion()
  if (linkedVersion(releases) === null) return null
  const state = readState(releases)
  if (state === null || !isOwn(releases)) {
    print('releases/ in the data directory is damaged or writable by other users: the installed rsm runs')
    return null
  }
  if (process.env[startedBy] === undefined && state.base !== version) {
    print(
      `rsm ${version} was installed since the last upgrade: it runs in place of ${linkedVersion(releases)}`,
    )
    await link(releases, null)
    return null
  }
  const found = leadsTo(releases, state)
  if (found === null) return null
  const path = executableOf(releases, found.version)
  if (!isOwn(path) || (await sha256OfFile(path).catch(() => null)) !== found.sha256) {
    print(`${path} is damaged: the installed rsm runs`)
    return null
  }
  const { trial } = state
  if (trial === null || found !== state.current) return found
  try {
    if (trial.starts < maxEnds) {
      const counted = { ...trial, starts: trial.starts + 1, process: identify(process.pid) }
      await writeState(releases, { ...state, trial: counted })
      return found
    }
    await undo(releases, `${found.version} ended ${maxEnds} times before it was linked`)
  } catch (error) {
    // Without a count, it could crash forever.
    print(`releases/ cannot be written (${String(error)}): the previous version runs`)
  }
  return state.former
}

type Execve = (file: string, argv: readonly string[], env: Record<string, string | undefined>) => never
/** Available since Node 22.15. */
const { execve } = process as typeof process & { execve?: Execve }

/** Replaces this process by the release. Returns only on failure. */
function become(path: string, { argv, variables }: Following): void {
  // Node aborts if execve fails.
  accessSync(path, constants.X_OK)
  const warns = process.emitWarning.bind(process)
  process.emitWarning = () => {}
  try {
    execve?.(path, [path, ...argv], { ...process.env, ...variables, [startedBy]: 'itself' })
  } finally {
    process.emitWarning = warns
  }
}

/** Runs the release as a child; resolves to its exit code. */
async function runChild({ argv, variables, stop, dataDir }: Following, path: string): Promise<number> {
  const child = spawn(path, argv, {
    env: { ...process.env, ...variables, [startedBy]: String(process.pid) },
    stdio: 'inherit',
    // Its own group, so that it gets Ctrl-C once, not twice.
    detached: true,
  })
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
  // It may reject before `await`.
  ended.catch(() => {})
  const releases = releasesIn(dataDir)
  const state = readState(releases)
  if (state?.trial && child.pid !== undefined)
    await writeState(releases, { ...state, trial: { ...state.trial, process: identify(child.pid) } })
  let killing: NodeJS.Timeout | undefined
  const end = () => {
    child.kill('SIGTERM')
    killing = setTimeout(() => child.kill('SIGKILL'), longestEnd)
  }
  if (stop.aborted) end()
  stop.addEventListener('abort', end, { once: true })
  try {
    return await ended
  } finally {
    clearTimeout(killing)
    stop.removeEventListener('abort', end)
  }
}

/** Aborts when the parent is gone, because a restarted agent would find the directory in use. */
function orphaned(): AbortSignal {
  const lost = new AbortController()
  const parent = Number(process.env[startedBy])
  if (parent > 0)
    setInterval(() => {
      if (process.ppid !== parent) lost.abort()
    }, checkInterval).unref()
  return lost.signal
}

/**
 * Runs the agent: the upgraded release or the installed rsm. Under systemd, which restarts it, this process
 * becomes the release. Elsewhere, or before Node 22.15, it runs the release as a child, and restarts it
 * during a trial.
 */
export async function follow(following: Following): Promise<void> {
  const { stop, print, runHere, dataDir } = following
  const releases = releasesIn(dataDir)
  const isRelease = process.env[startedBy] !== undefined
  const isWaitedFor = Number(process.env[startedBy]) > 0
  const mayBecome = execve !== undefined && process.env['INVOCATION_ID'] !== undefined
  const gone = orphaned()
  for (let isFirst = true; !stop.aborted; isFirst = false) {
    const found = isFirst && isRelease ? null : await releaseToRun(following)
    if (found === null || found.version === agentVersion()) {
      if (!(await runHere(gone))) return
      if (isWaitedFor) {
        process.exitCode = anotherCode
        return
      }
      continue
    }
    const path = executableOf(releases, found.version)
    try {
      if (mayBecome) become(path, following)
      const code = await runChild(following, path)
      const isSettled = readState(releases)?.trial == null && linkedVersion(releases) === found.version
      if (code !== anotherCode && isSettled) {
        process.exitCode = code
        return
      }
    } catch (error) {
      print(`${path} does not start: ${error instanceof Error ? error.message : String(error)}`)
      // The file system may be noexec by now: the installed rsm may still run.
      if (readState(releases)?.trial == null && !(await runHere(gone))) return
    }
    await pause(between, stop)
  }
}
