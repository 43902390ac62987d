import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, constants, createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
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

/** Ends of a new release before it was linked, after which the former one runs again (contract §10). */
export const maxEnds = 3
/** Set for the process of a release: how it was started. It only keeps a release from starting itself. */
const startedBy = 'RSM_AGENT_STARTED_BY'
/** By which a release tells the process that waits for it that another one is to run. */
const anotherCode = 75
/** Milliseconds between two starts of one that ends. */
const between = 1_000
/** Milliseconds after which a release that was told to end is ended. */
const longestEnd = 40_000
/** How often a release looks whether the process that waits for it is still there, milliseconds. */
const checkInterval = 5_000

export async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

interface Following {
  readonly dataDir: string
  /** The words of the command line. */
  readonly argv: readonly string[]
  /** What a release has to find in its environment beside that of this process. */
  readonly variables: Readonly<Record<string, string>>
  /** Aborts when this process is to end. */
  readonly stop: AbortSignal
  readonly print: (text: string) => void
  /** Runs the agent in this process; true where another release is to take over. */
  readonly runHere: (orphaned: AbortSignal) => Promise<boolean>
}

/** What the link leads to, as the state knows it. */
function leadsTo(releases: string, { current, former }: ReleaseState): Installed | null {
  const version = linkedVersion(releases)
  return [current, former].find((each) => version !== null && each?.version === version) ?? null
}

/** The release that runs in place of the installed rsm; null where there is none. Counts the starts of one on trial. */
async function releaseToRun({ dataDir, print }: Following): Promise<Installed | null> {
  const releases = releasesIn(dataDir)
  const version = agentVersion()
  if (linkedVersion(releases) === null) return null
  const state = readState(releases)
  if (state === null || !isOwn(releases)) {
    print('what releases/ of the data directory holds is not as rsm leaves it: the installed rsm runs')
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
  if (!isOwn(path) || (await sha256Of(path).catch(() => null)) !== found.sha256) {
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
    // What can't be counted could end for ever.
    print(`releases/ cannot be written (${String(error)}): the previous version runs`)
  }
  return state.former
}

type Execve = (file: string, argv: readonly string[], env: Record<string, string | undefined>) => never
/** Node 22.15 has it. */
const { execve } = process as typeof process & { execve?: Execve }

/** Becomes the release, as the same process. Returns only where that fails. */
function become(path: string, { argv, variables }: Following): void {
  // Node aborts where the system refuses.
  accessSync(path, constants.X_OK)
  const warns = process.emitWarning.bind(process)
  process.emitWarning = () => {}
  try {
    execve?.(path, [path, ...argv], { ...process.env, ...variables, [startedBy]: 'itself' })
  } finally {
    process.emitWarning = warns
  }
}

/** Runs the release as a child; settles with its exit code. */
async function runChild({ argv, variables, stop, dataDir }: Following, path: string): Promise<number> {
  const child = spawn(path, argv, {
    env: { ...process.env, ...variables, [startedBy]: String(process.pid) },
    stdio: 'inherit',
    // A Ctrl-C is handed on once, not twice.
    detached: true,
  })
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
  // It may come to that before anybody waits for it.
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

/** Aborts when the process that waits for this one is gone: whoever starts the agent anew would find its directory in use. */
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
 * Runs the agent: the release that it was upgraded to, or the installed rsm. Where systemd starts it again, this process
 * becomes the release; elsewhere, or before Node 22.15, it waits for it and starts it again while it is on trial.
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
      // A file system that is noexec by now: the installed rsm may run all the same.
      if (readState(releases)?.trial == null && !(await runHere(gone))) return
    }
    await pause(between, stop)
  }
}
