import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, chownSync, closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { faultPoint } from '#fault-point'
import type { ExecuteScript } from '../../core/protocol/messages.ts'
import { interpreterOptions, type ScriptType } from '../../core/script/script-form.ts'
import { notEnforced } from '../../core/task/limits.ts'
import type { Limiter } from '../processes/limits.ts'
import { markVariable, type ProcessId, startTimeOf } from '../processes/machine.ts'
import { limitOpenFiles } from '../processes/open-files.ts'
import { quoted } from '../processes/own-process.ts'
import type { Account } from './account.ts'
import { barredUser, dropTo } from './privileges.ts'
import type { Sandbox } from './sandbox.ts'
import { findInPath, searchPath } from './search-path.ts'

/** `python -u`, so that output is live. */
const interpreters: Record<ScriptType, readonly string[]> = {
  BASH: ['bash'],
  PYTHON: ['python3', '-u'],
  POWERSHELL: ['pwsh', '-NoProfile', '-NonInteractive', '-File'],
}

/** The descriptors behind those of streams, exit code, cgroup and script: the cgroups of limits, one digit each, below 9. */
const firstLimit = 6
/** A name that no param has, as those are kept for rsm itself. */
const goAhead = 'RSM_GO_AHEAD'
/** What the wrapper leaves in the place of an exit code. */
const neverBegun = 'never'
/** What runs instead of a script whose limits vanished before it could be put under them. */
const unlimited = 'echo "rsm: the cgroup of its limits is gone" >&2; exit 126'

/** What stands on the disk before a script begins: how it comes there, and where; both as words of a shell. */
interface Delivered {
  readonly command: string
  readonly path: string
}

const inherited = (closed: readonly number[]) => closed.map((fd) => `${fd}>&-`).join(' ')
const tellExit = `read -r u r </proc/uptime; printf '%s %s\\n' "$c" "$u" >&3`

/**
 * The wrapper outlives the agent and writes down how the script ended, in one write over a line that is there already,
 * so that not even a full disk loses it. It sets no variable before the script runs: params are variables here too, and
 * setting one would change what the script sees. TERM is caught, not ignored, as children inherit ignoring. What the
 * shell itself says of a death ("Killed") is no output of the script: the subshell is there for that, as dash says it
 * with the redirections of what died.
 *
 * It begins when the agent says so, which the agent does once its journal names this very process: before that, or
 * without an agent, it ends without having begun.
 */
function wrapper(limits: number, takesScript: boolean, stdin: Delivered | null): string {
  const groups = Array.from({ length: limits }, (_, at) => firstLimit + at)
  const closed = [3, 4, ...(takesScript ? [] : [5]), ...groups, 9]
  return `trap : HUP INT QUIT TERM
read -r ${goAhead} || { echo ${neverBegun} >&3; exit; }
unset ${goAhead}
umask 022
${stdin === null ? '' : `${stdin.command} ${inherited(closed)} </dev/null || { c=$?; ${tellExit}; exit; }\n`}\
${limitOpenFiles}
{ echo 0 >&4; } 2>/dev/null
${groups.map((fd) => `{ echo 0 >&${fd}; } 2>/dev/null || set -- sh -c '${unlimited}'\n`).join('')}\
exec 9>&2 2>/dev/null
(exec "$@" <${stdin?.path ?? '/dev/null'} 2>&9 ${inherited(closed)})
c=$?
${tellExit}${stdin === null ? '' : `\nrm -f -- ${stdin.path}`}`
}

/**
 * Enters the working directory as the user who has the right to, or not; a script by name does so itself. It stays beside
 * the script, so that this user can open by a path of /proc what lies in the agent's closed directory, and the script
 * itself inherits no descriptor. In a subshell, as dash closes a descriptor for the whole shell while a command of it
 * runs; and without the shell's own words about its death.
 */
const enter = (isByName: boolean) => `trap : HUP INT QUIT TERM
${isByName ? '( cd -- "$1" )' : 'cd -- "$1"'} || exit 126
shift
exec 9>&2 2>/dev/null
( exec "$@" "/proc/$$/fd/5" 2>&9 5<&- 9>&- )
exit $?`

/**
 * Bash begins each of its errors with the path of the script as it was given. So it is started by a name, in the script's
 * own directory, and this stands before the first line, on that line: it enters the working directory, which is the
 * first argument, and lets `$0` be the whole path, which is the second (from bash 5.0 on).
 */
const entering = `{ BASH_ARGV0=$2; cd -P -- "$1" && shift 2 && unset OLDPWD; } 2>/dev/null || \
{ echo "rsm: can't enter the working directory" >&2; exit 126; }; `

const exitLineBytes = 48
const scriptName = 'script'
/** What a script reads that is given something to read. */
export const stdinName = 'stdin'

/** Whether its script is started by a name, in its directory. In a strict sandbox its path is short already. */
function isByName({ scriptType }: ExecuteScript, { sandbox }: Pick<Start, 'sandbox'>): boolean {
  return scriptType === 'BASH' && sandbox.mode !== 'strict'
}

export function installedTypes(): ScriptType[] {
  return (Object.keys(interpreters) as ScriptType[]).filter(
    (type) => findInPath(interpreters[type][0] ?? '') !== undefined,
  )
}

/** Why an execution can't be started here, with the exit code that says so (contract §4). */
export interface Refusal {
  readonly exitCode: 126 | 127
  readonly error: string
}

/** As the agent was started: as whom scripts run, as whom they may, and what can be limited here. */
interface RefusalOptions {
  readonly own: Account
  readonly runAs: string
  readonly allowRunAs: readonly string[]
  readonly limiter: Limiter
}

/** Checks what can be known before the start: user, limits, interpreter, params. */
export function refusal(request: ExecuteScript, options: RefusalOptions): Refusal | null {
  const { runAs, limiter } = options
  const barred = barredUser(request.runAs ?? runAs, options)
  if (barred !== null) return { exitCode: 126, error: barred }
  const [missing] = notEnforced(request.limits ?? {}, limiter.enforced)
  if (missing !== undefined) return { exitCode: 126, error: limiter.lack(missing) }
  const [program = ''] = interpreters[request.scriptType]
  if (findInPath(program) === undefined)
    return { exitCode: 127, error: `${program} is not installed on this host` }
  for (const [name, value] of Object.entries(request.params))
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes('\0'))
      return {
        exitCode: 126,
        error: `the parameter ${JSON.stringify(name)} can't be an environment variable`,
      }
  return null
}

/** Built from nothing: what the agent itself was started with is no business of a script. */
function environment(request: ExecuteScript, { account, mark }: Start): Record<string, string> {
  return {
    ...request.params,
    PATH: searchPath,
    HOME: account.home,
    USER: account.name,
    LOGNAME: account.name,
    SHELL: account.shell,
    LANG: process.env['LANG'] ?? 'C.UTF-8',
    RSM_TASK_ID: request.taskId,
    [markVariable]: mark,
  }
}

/** The script by its path; by a descriptor where the agent's directory is closed to it. */
function command(request: ExecuteScript, { directory, account, sandbox }: Start, workDir: string): string[] {
  const { scriptType, script } = request
  const interpreter = [...interpreters[scriptType], ...interpreterOptions(scriptType, script)]
  const enclosed = sandbox.enclose(account, workDir, interpreter)
  if (enclosed) return enclosed
  const path = join(directory, scriptName)
  const byName = isByName(request, { sandbox })
  const named = byName ? [...interpreter, scriptName, workDir] : interpreter
  if (account.uid === process.getuid?.()) return [...named, path]
  return [...dropTo(account), 'sh', '-c', enter(byName), 'sh', workDir, ...named]
}

/** How many processes a start adds to those of the script itself, while it runs. */
export function ownProcesses({ account, sandbox }: Pick<Start, 'account' | 'sandbox'>): number {
  if (sandbox.mode === 'strict') return 3
  return account.uid === process.getuid?.() ? 1 : 2
}

/**
 * Writes the script, and for another user the empty spools, which otherwise come with the start. None of it is fsynced,
 * as after a loss of power it is LOST anyway.
 */
export function prepare(request: ExecuteScript, start: Start): void {
  const { directory, account } = start
  const isOwn = account.uid === process.getuid?.()
  faultPoint('agent.prepared.before')
  const before = isByName(request, start) ? entering : ''
  write(join(directory, scriptName), before + request.script, 0o700)
  if (!isOwn) {
    // Entered by nobody but who has it as working directory: those above it are closed.
    chmodSync(directory, 0o711)
    for (const name of ['stdout', 'stderr']) write(join(directory, name), '', 0o600)
    // Scripts open /dev/stdout and /dev/stderr by name: the user has to own what stands behind.
    for (const name of [scriptName, 'stdout', 'stderr'])
      chownSync(join(directory, name), account.uid, account.gid)
  }
  faultPoint('agent.prepared.after')
}

function write(path: string, content: string, mode: number): void {
  const fd = openSync(path, 'w', mode)
  try {
    const text = Buffer.from(content)
    for (let written = 0; written < text.length; ) written += writeSync(fd, text, written)
  } finally {
    closeSync(fd)
  }
}

/** Where and how a script starts. */
export interface Start {
  readonly directory: string
  readonly account: Account
  /** By which the processes of the execution are known (machine.ts). */
  readonly mark: string
  readonly sandbox: Sandbox
  readonly cgroup: string | null
  /** Cgroups of its limits: it does not run outside of one. */
  readonly limitGroups: readonly string[]
  /** The words of a shell that bring what it is to read; undefined where that is nothing. */
  readonly delivery?: string
}

interface Launched {
  /** The wrapper, which waits. */
  readonly root: ProcessId
  /** Lets it begin. */
  readonly begin: () => void
  /** Lets it end without having begun, as it also does when the agent dies. */
  readonly abandon: () => void
  /** Settles when the wrapper has ended. */
  readonly exited: Promise<void>
}

/** By nothing of the environment that the params of a script make. */
function deliveredBy({ delivery, directory, mark }: Start): Delivered | null {
  if (delivery === undefined) return null
  const command = `env -i PATH=${searchPath} ${markVariable}=${mark} ${delivery}`
  return { command, path: quoted(join(directory, stdinName)) }
}

/** Hands a prepared script to a wrapper in a session of its own, which waits for `begin`. Throws when the system refuses (E2BIG, EAGAIN). */
export async function launch(request: ExecuteScript, start: Start, workDir: string): Promise<Launched> {
  const { directory, account, sandbox, cgroup, limitGroups } = start
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
    const takesScript = isOther || sandbox.mode === 'strict'
    const script = takesScript ? opened(join(directory, scriptName), 'r') : 'ignore'
    const limits = limitGroups.map((group) => opened(join(group, 'cgroup.procs'), 'w'))
    const text = wrapper(limits.length, takesScript, deliveredBy(start))
    const words = ['-c', text, 'rsm', ...command(request, start, workDir)]
    faultPoint('agent.launch.before')
    const child: ChildProcess = spawn('/bin/sh', words, {
      cwd: isByName(request, start) ? directory : takesScript ? '/' : workDir,
      env: environment(request, start),
      detached: true,
      stdio: ['pipe', stdout, stderr, exit, processes, script, ...limits],
    })
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', reject)
    })
    child.unref()
    const pid = child.pid ?? 0
    const word = child.stdin
    // A wrapper that was killed meanwhile reads nothing; its end says so.
    word?.on('error', () => {})
    return {
      root: { pid, startTime: startTimeOf(pid) ?? 0 },
      exited,
      begin: () => void word?.end('go\n'),
      abandon: () => void word?.destroy(),
    }
  } finally {
    for (const fd of open) closeSync(fd)
  }
}

/** How a script ended; `uptime` in seconds since boot. */
export interface Exit {
  readonly code: number
  readonly uptime: number
  /** The wrapper ended before the agent let it begin. */
  readonly isNever?: true
}

/** What the wrapper wrote, null while it has not. */
export function readExit(directory: string): Exit | null {
  let text: string
  try {
    text = readFileSync(join(directory, 'exit'), 'latin1')
  } catch {
    return null
  }
  if (text.startsWith(neverBegun)) return { code: 126, uptime: 0, isNever: true }
  const [, code, uptime] = /^(\d{1,3}) ([\d.]+)\n/.exec(text) ?? []
  return code === undefined ? null : { code: Number(code), uptime: Number(uptime) }
}
