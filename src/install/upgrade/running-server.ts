import { spawn } from 'node:child_process'
import { openSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { RsmError } from '../../core/errors.ts'
import { findSystemd, type Systemd } from '../systemd.ts'

/** Milliseconds for an orderly stop: 10 s, and reserve for slow machines. */
const stopPatience = 30_000

export interface Operated {
  /** The method, for people. */
  readonly by: string
  /** Command that starts it; null if it must be started with its own command line. */
  readonly startLine: string | null
  stop(): Promise<void>
  /** Resolves once it is starting; `ended` resolves with the reason if it ends again. */
  start(): Promise<{ ended: Promise<string> }>
}

/** The executable of a process. Errors: `forbidden` for another user's process. */
export function executableOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`)
  } catch (cause) {
    throw new RsmError('forbidden', `the server (pid ${pid}) is another user's process`, {
      hint: 'run this as root, or as the user that the server runs as',
      cause,
    })
  }
}

/** The service of a process: `rsm-server.service`; null without one. */
function unitOf(pid: number): string | null {
  const line = readFileSync(`/proc/${pid}/cgroup`, 'utf8')
    .split('\n')
    .find((each) => each.startsWith('0::') || each.includes(':name=systemd:'))
  const name = line?.split('/').findLast((part) => part.endsWith('.service'))
  return name ?? null
}

/** Null unless the process is the main process of the unit. */
async function asUnit(isUsers: boolean, unit: string, pid: number): Promise<Operated | null> {
  const systemd = findSystemd(isUsers)
  if (systemd === null) return null
  const main = await systemd.ctl('show', '-p', 'MainPID', '--value', unit).catch(() => '')
  if (Number(main) !== pid) return null
  return {
    by: `systemctl: ${unit}`,
    startLine: `systemctl ${isUsers ? '--user ' : ''}start ${unit}`,
    stop: async () => void (await systemd.ctl('stop', unit)),
    async start() {
      // Earlier attempts may have used up the start limit; this also resets NRestarts.
      await systemd.ctl('reset-failed', unit).catch(() => undefined)
      try {
        await systemd.ctl('start', unit)
      } catch (error) {
        // The job fails if systemd sees the process end before its exec succeeds.
        const why = await endOf(systemd, unit)
        if (why === null) throw error
        return { ended: Promise.resolve(why) }
      }
      return { ended: watchUnit(systemd, unit) }
    },
  }
}

/** Why the process of a unit has ended since the start, even if systemd restarted it; null while it runs. */
async function endOf(systemd: Systemd, unit: string): Promise<string | null> {
  const output = await systemd.ctl(
    'show',
    '-p',
    'ActiveState,SubState,NRestarts,ExecMainCode,ExecMainStatus',
    unit,
  )
  const state = Object.fromEntries(output.split('\n').map((line) => line.split('=', 2)))
  const isDown = state.ActiveState === 'failed' || state.SubState === 'auto-restart'
  if (!isDown && Number(state.NRestarts) === 0) return null
  // CLD_EXITED of waitid(2). A restarted process has no status yet.
  if (state.ExecMainCode === '1') return `it ended with exit code ${state.ExecMainStatus}`
  return isDown ? `it ended with signal ${state.ExecMainStatus}` : 'it ended and was restarted'
}

/** Resolves when the process of a unit ends; does not keep this process alive. */
async function watchUnit(systemd: Systemd, unit: string): Promise<string> {
  for (;;) {
    const why = await endOf(systemd, unit).catch(() => null)
    if (why !== null) return why
    await sleep(500, undefined, { ref: false })
  }
}

const partsOf = (path: string) => readFileSync(path, 'utf8').split('\0').slice(0, -1)

/** A zombie has ended too. */
function isGone(pid: number): boolean {
  try {
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return true
  }
}

async function hasEnded(pid: number): Promise<boolean> {
  for (const until = Date.now() + stopPatience; Date.now() < until; await sleep(50))
    if (isGone(pid)) return true
  return false
}

/** A server started by hand: restarts as `target` with its arguments, environment, directory and output. */
function asProcess(first: number, target: string): Operated {
  const words = partsOf(`/proc/${first}/cmdline`)
  const at = words.findIndex((word, index) => word === 'server' && words[index + 1] === 'start')
  if (at < 0)
    throw new RsmError('conflict', `the server (pid ${first}) was not started by rsm server start`, {
      hint: 'stop it, replace its executable, and start it',
    })
  if (statSync(`/proc/${first}`).uid !== process.getuid?.())
    throw new RsmError('forbidden', `the server (pid ${first}) is another user's process`, {
      hint: 'run this as the user that the server runs as: it restarts as the current user',
    })
  const variables = partsOf(`/proc/${first}/environ`).flatMap((line) => {
    const equals = line.indexOf('=')
    // A server erases the password of its first start, which leaves empty lines; older ones keep it.
    return equals < 1 ? [] : [[line.slice(0, equals), line.slice(equals + 1)] as const]
  })
  const { RSM_ADMIN_PASSWORD: _, ...env } = Object.fromEntries(variables)
  const cwd = readlinkSync(`/proc/${first}/cwd`)
  const output = [1, 2].map((fd) => {
    try {
      return openSync(`/proc/${first}/fd/${fd}`, 'a')
    } catch {
      return openSync('/dev/null', 'a')
    }
  })
  let pid = first
  return {
    by: `pid ${first}, restarting with the same arguments`,
    startLine: null,
    async stop() {
      try {
        process.kill(pid, 'SIGTERM')
      } catch {
        return
      }
      if (!(await hasEnded(pid))) throw new RsmError('unavailable', `the server (pid ${pid}) does not stop`)
    },
    async start() {
      const child = spawn(target, words.slice(at), {
        cwd,
        env,
        detached: true,
        stdio: ['ignore', output[0], output[1]],
      })
      const gone = new Promise<string>((resolve) => {
        child.once('error', (error) => resolve(error.message))
        child.once('exit', (code, signal) => resolve(`it ended with ${signal ?? `exit code ${code}`}`))
      })
      child.unref()
      pid = child.pid ?? 0
      return { ended: gone }
    },
  }
}

/** How to operate the server with this pid; `target` is the executable to start. */
export async function operatedBy(pid: number, target: string): Promise<Operated> {
  const unit = unitOf(pid)
  for (const isUsers of unit === null ? [] : [false, true]) {
    const found = unit === null ? null : await asUnit(isUsers, unit, pid)
    if (found !== null) return found
  }
  return asProcess(pid, target)
}
