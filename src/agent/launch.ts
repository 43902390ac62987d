import { spawn } from 'node:child_process'
import {
  accessSync,
  chownSync,
  closeSync,
  constants,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { faultPoint } from '#fault-point'
import type { ScriptType } from '../core/protocol/http/scripts.ts'
import type { ExecuteScript } from '../core/protocol/messages.ts'
import type { Account } from './account.ts'

const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** `python -u`, so that output is live. */
const interpreters: Record<ScriptType, readonly string[]> = {
  BASH: ['bash'],
  PYTHON: ['python3', '-u'],
  POWERSHELL: ['pwsh', '-NoProfile', '-NonInteractive', '-File'],
}

/**
 * The wrapper outlives the agent and writes down how the script ended, in one write over a line that is there already,
 * so that not even a full disk loses it. It sets no variable before the script runs: params are variables here too, and
 * setting one would change what the script sees. TERM is caught, not ignored, as children inherit ignoring.
 */
const wrapper = `trap : HUP INT QUIT TERM
{ echo 0 >&4; } 2>/dev/null
"$@" 3>&- 4>&-
c=$?
read -r u r </proc/uptime
printf '%s %s\\n' "$c" "$u" >&3`

/** Enters the working directory as the user who has the right to, or not. */
const enter = 'cd -- "$1" || exit 126; shift; exec "$@"'

const exitLineBytes = 48

function findInPath(name: string): boolean {
  return searchPath.split(':').some((directory) => {
    try {
      accessSync(join(directory, name), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

export function installedTypes(): ScriptType[] {
  return (Object.keys(interpreters) as ScriptType[]).filter((type) => findInPath(interpreters[type][0] ?? ''))
}

/** Why an execution can't be started here, with the exit code that says so (seed "Script exit codes"). */
export interface Refusal {
  readonly exitCode: 126 | 127
  readonly error: string
}

/** Checks what can be known before the start: user, interpreter, params, working directory. */
export function refusal(
  request: ExecuteScript,
  runAs: string,
  allowRunAs: readonly string[],
): Refusal | null {
  const user = request.runAs ?? runAs
  if (user !== runAs && !allowRunAs.includes(user))
    return {
      exitCode: 126,
      error: `this agent runs nothing as ${user}: its --allow-run-as does not name that user`,
    }
  const [program = ''] = interpreters[request.scriptType]
  if (!findInPath(program)) return { exitCode: 127, error: `${program} is not installed on this host` }
  for (const [name, value] of Object.entries(request.params))
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes('\0'))
      return {
        exitCode: 126,
        error: `the parameter ${JSON.stringify(name)} can't be an environment variable`,
      }
  if (request.workDir === undefined) return null
  try {
    if (statSync(request.workDir).isDirectory()) return null
    return { exitCode: 126, error: `the working directory ${request.workDir} is not a directory` }
  } catch (error) {
    const reason =
      error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'does not exist' : String(error)
    return { exitCode: 126, error: `the working directory ${request.workDir}: ${reason}` }
  }
}

/** Built from nothing: what the agent itself was started with is no business of a script. */
function environment(request: ExecuteScript, account: Account): Record<string, string> {
  return {
    ...request.params,
    PATH: searchPath,
    HOME: account.home,
    USER: account.name,
    LOGNAME: account.name,
    SHELL: account.shell,
    LANG: process.env['LANG'] ?? 'C.UTF-8',
    RSM_TASK_ID: request.taskId,
  }
}

/** The script by its path; for another user by a descriptor, as the agent's directory is closed to that user. */
function command(request: ExecuteScript, directory: string, account: Account, workDir: string): string[] {
  const interpreter = interpreters[request.scriptType]
  if (account.uid === process.getuid?.()) return [...interpreter, join(directory, 'script')]
  const drop = [`--reuid=${account.uid}`, `--regid=${account.gid}`, '--init-groups', '--no-new-privs', '--']
  return ['setpriv', ...drop, 'sh', '-c', enter, 'sh', workDir, ...interpreter, '/dev/fd/5']
}

function existing(directory: string): string {
  try {
    return statSync(directory).isDirectory() ? directory : '/'
  } catch {
    return '/'
  }
}

/** Writes the script and the empty spools; none of it is fsynced, as after a loss of power it is LOST anyway. */
export function prepare(request: ExecuteScript, directory: string, account: Account): void {
  faultPoint('agent.prepared.before')
  const isOther = account.uid !== process.getuid?.()
  for (const [name, mode] of [
    ['script', 0o700],
    ['stdout', 0o600],
    ['stderr', 0o600],
  ] as const) {
    const path = join(directory, name)
    const fd = openSync(path, 'w', mode)
    try {
      const text = Buffer.from(name === 'script' ? request.script : '')
      for (let written = 0; written < text.length; ) written += writeSync(fd, text, written)
    } finally {
      closeSync(fd)
    }
    // Scripts open /dev/stdout and /dev/stderr by name: the user has to own what stands behind.
    if (isOther) chownSync(path, account.uid, account.gid)
  }
  faultPoint('agent.prepared.after')
}

interface Launched {
  readonly pid: number
  /** Settles when the wrapper has ended. */
  readonly exited: Promise<void>
}

/** Starts a prepared script in a session of its own. Throws when the system refuses (E2BIG, EAGAIN). */
export async function launch(
  request: ExecuteScript,
  directory: string,
  account: Account,
  cgroup: string | null,
): Promise<Launched> {
  const workDir = request.workDir ?? existing(account.home)
  const open: number[] = []
  const opened = (path: string, flags: string) => {
    const fd = openSync(path, flags, 0o600)
    open.push(fd)
    return fd
  }
  try {
    const stdout = opened(join(directory, 'stdout'), 'a')
    const stderr = opened(join(directory, 'stderr'), 'a')
    const exit = opened(join(directory, 'exit'), 'w')
    writeSync(exit, `${' '.repeat(exitLineBytes - 1)}\n`, 0)
    const processes = cgroup === null ? 'ignore' : opened(join(cgroup, 'cgroup.procs'), 'w')
    const isOther = account.uid !== process.getuid?.()
    const script = isOther ? [opened(join(directory, 'script'), 'r')] : []
    faultPoint('agent.launch.before')
    const child = spawn('/bin/sh', ['-c', wrapper, 'rsm', ...command(request, directory, account, workDir)], {
      cwd: isOther ? '/' : workDir,
      env: environment(request, account),
      detached: true,
      stdio: ['ignore', stdout, stderr, exit, processes, ...script],
    })
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', reject)
    })
    child.unref()
    return { pid: child.pid ?? 0, exited }
  } finally {
    for (const fd of open) closeSync(fd)
  }
}

/** How a script ended; `uptime` in seconds since boot. */
export interface Exit {
  readonly code: number
  readonly uptime: number
}

/** What the wrapper wrote, null while it has not. */
export function readExit(directory: string): Exit | null {
  let text: string
  try {
    text = readFileSync(join(directory, 'exit'), 'latin1')
  } catch {
    return null
  }
  const [, code, uptime] = /^(\d{1,3}) ([\d.]+)\n/.exec(text) ?? []
  return code === undefined ? null : { code: Number(code), uptime: Number(uptime) }
}
