import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, chownSync, closeSync, existsSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { faultPoint } from '#fault-point'
import { RsmError } from '../../core/errors.ts'
import type { ScriptOrder } from '../../core/protocol/orders.ts'
import {
  type Interpreter,
  interpreterOf,
  type ScriptType,
  scriptFileName,
  scriptTypes,
} from '../../core/scripts/script-form.ts'
import { type Account, dropTo } from './account.ts'
import { usualAttributes } from './attributes.ts'
import { blankExit, deathName, leaderName, neverBegun } from './exit-file.ts'
import { type ProcessId, startTimeOf, tagVariable } from './machine.ts'
import { findInPath, quoted, searchPath } from './programs.ts'
import type { Sandbox } from './sandbox.ts'

/** `python -u`, so that output is live. */
const interpreters: Record<Interpreter, readonly string[]> = {
  bash: ['bash'],
  sh: ['sh'],
  python3: ['python3', '-u'],
  pwsh: ['pwsh', '-NoProfile', '-NonInteractive', '-File'],
}

/** First descriptor for cgroups of limits, after streams, exit file, cgroup and params; below 9. */
const firstLimit = 6
/** The only variable that the wrapper sets; params cannot have this name. */
const scratch = 'RSM_GO_AHEAD'
/** Runs instead of a script whose cgroups of limits vanished before the start. */
const unlimited = 'echo "rsm: the cgroup of its limits is gone" >&2; exit 126'

const inherited = (closed: readonly number[]) => closed.map((fd) => `${fd}>&-`).join(' ')
const reportExit = `read -r u r </proc/uptime; printf '%s %s\\n' "$c" "$u" >&3`

/**
 * The wrapper outlives the agent and records how the script ended, in one write over reserved blanks, so that
 * a full disk cannot lose it. It sets no variable before the script runs: params are variables here too, and
 * setting one would change what the script sees. TERM is caught, not ignored, because children inherit
 * ignoring. The shell's own message ("Killed") is not script output, but distinguishes a signal from `exit
 * 137`. The subshell captures it, because dash writes it with the redirections of the dead process. The
 * wrapper first records the script's process, because the script leads its own session.
 *
 * It waits for the agent's go-ahead, which comes once the journal has this process. Without it, the wrapper
 * ends without beginning the script.
 */
function wrapper(limits: number, start: Start): string {
  const takesParams = isHanded(start)
  const delivery = deliveryOf(start)
  const stdin = quoted(join(start.directory, stdinName))
  const groups = Array.from({ length: limits }, (_, at) => firstLimit + at)
  const closed = [3, 4, ...(takesParams ? [] : [5]), ...groups, 9]
  return `trap : HUP INT QUIT TERM
read -r ${scratch} || { echo ${neverBegun} >&3; exit; }
unset ${scratch}
umask 022
${delivery === null ? '' : `${delivery} ${inherited([...closed, 5])} </dev/null || { c=$?; ${reportExit}; exit; }\n`}\
${usualAttributes()}
{ echo 0 >&4; } 2>/dev/null
${groups.map((fd) => `{ echo 0 >&${fd}; } 2>/dev/null || set -- sh -c '${unlimited}'\n`).join('')}\
exec 9>&2 2>/dev/null
command exec 2>${quoted(join(start.directory, deathName))}
({ read -r ${scratch} </proc/self/stat; echo "$${scratch}" >${quoted(join(start.directory, leaderName))}; } 2>/dev/null
unset ${scratch}
exec "$@" <${delivery === null ? '/dev/null' : stdin} 2>&9 ${inherited(closed)})
c=$?
${reportExit}${delivery === null ? '' : `\nrm -f -- ${stdin}`}`
}

/**
 * Runs with the user's rights before a sandboxed script or one of another user: exports the params from
 * descriptor 5 and enters the working directory.
 */
const enter = `command . /proc/self/fd/5 2>/dev/null || exit 126
exec 5<&-
cd -- "$1" || exit 126
unset OLDPWD
shift
exec setsid "$@"`

/** Opens a deleted file with the params, owned by the script's user, for `enter`. */
function openParams(params: Readonly<Record<string, string>>, { directory, account }: Start): number {
  const path = join(directory, 'params')
  const text = Object.entries(params).map(([name, value]) => `export ${name}=${quoted(value)}\n`)
  write(path, text.join(''), 0o600)
  try {
    chownSync(path, account.uid, account.gid)
    return openSync(path, 'r')
  } finally {
    rmSync(path)
  }
}

/** File that a script reads as its stdin, if its order has one. */
export const stdinName = 'stdin'

/** Path of the script. The directory is the agent's, so that the user can change only the file's content. */
function fileOf({ scriptName = 'script' }: Script, directory: string): string {
  // The queue of an earlier agent may hold an unchecked request.
  if (!scriptFileName.test(scriptName)) throw new RsmError('invalid', 'the script name is not a file name')
  return join(directory, 'run', scriptName)
}

/** Whether params are passed by descriptor, because commands with other rights run before the script. */
const isHanded = ({ account, sandbox }: Pick<Start, 'account' | 'sandbox'>) =>
  account.uid !== process.getuid?.() || sandbox.mode === 'strict'

export function installedTypes(): ScriptType[] {
  return scriptTypes.filter((type) => findInPath(interpreterOf(type, '').program) !== undefined)
}

/** Built from scratch, so that scripts do not inherit the agent's environment. */
function environment(start: Start, workDir: string): Record<string, string> {
  const { taskId, program, account, tag, sandbox } = start
  return {
    LANG: process.env['LANG'] ?? 'C.UTF-8',
    ...runtimeOf(account, sandbox),
    // The shell takes a symlinked working directory from PWD.
    ...(isHanded(start) ? {} : { ...paramsOf(program), PWD: workDir }),
    PATH: searchPath,
    HOME: account.home,
    USER: account.name,
    LOGNAME: account.name,
    SHELL: account.shell,
    RSM_TASK_ID: taskId,
    [tagVariable]: tag,
  }
}

/** The user's runtime directory, such as for systemd and podman sockets; empty if it does not exist or is hidden. */
export function runtimeOf(account: Account, sandbox: Sandbox): { XDG_RUNTIME_DIR?: string } {
  const path = `/run/user/${account.uid}`
  return existsSync(path) && !sandbox.hides(path, account) ? { XDG_RUNTIME_DIR: path } : {}
}

function command({ program, directory, account, sandbox }: Start, workDir: string): string[] {
  // A host without util-linux still runs scripts as the agent itself.
  const session = findInPath('setsid') ? ['setsid'] : []
  if ('argv' in program) return [...session, ...program.argv]
  const { scriptType, script } = program.script
  const { program: name, options } = interpreterOf(scriptType, script)
  const interpreter = [...interpreters[name], ...options]
  const path = fileOf(program.script, directory)
  const enclosed = sandbox.enclose(account, { enter, workDir, interpreter, script: path })
  if (enclosed) return enclosed
  if (account.uid === process.getuid?.()) return [...session, ...interpreter, path]
  return [...dropTo(account), 'sh', '-c', enter, 'sh', workDir, ...interpreter, path]
}

/** Number of processes that a start adds to those of the script while it runs. */
export function ownProcesses({ mode }: Sandbox): number {
  return mode === 'strict' ? 3 : 1
}

/**
 * Writes the script, its empty stdin file, and for another user the empty spools, which the start creates
 * otherwise. Not fsynced, because after a power loss the execution is LOST anyway.
 */
export function prepare({ program, directory, account, delivery }: Start): void {
  if ('argv' in program) return
  faultPoint('agent.prepared.before')
  const path = fileOf(program.script, directory)
  mkdirSync(dirname(path), { recursive: true, mode: 0o711 })
  write(path, program.script.script, 0o700)
  const isOther = account.uid !== process.getuid?.()
  const empty = [...(isOther ? ['stdout', 'stderr'] : []), ...(delivery ? [stdinName] : [])]
  const files = empty.map((name) => join(directory, name))
  for (const file of files) write(file, '', 0o600)
  if (isOther) {
    for (const passed of [directory, dirname(path)]) chmodSync(passed, 0o711)
    // Scripts open /dev/stdin, /dev/stdout and /dev/stderr by name, so the user must own those files.
    for (const file of [path, ...files]) chownSync(file, account.uid, account.gid)
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

type Script = Pick<ScriptOrder, 'script' | 'scriptType' | 'scriptName' | 'params'>

const paramsOf = (program: Start['program']) => ('argv' in program ? {} : program.script.params)

export interface Start {
  readonly taskId: string
  /** A script, or a command of the agent, which runs as the agent. */
  readonly program: { readonly script: Script } | { readonly argv: readonly string[] }
  readonly directory: string
  readonly account: Account
  /** Identifies the processes of the execution (machine.ts). */
  readonly tag: string
  readonly sandbox: Sandbox
  readonly cgroup: string | null
  /** Cgroups of its limits: it must not run outside of them. */
  readonly limitGroups: readonly string[]
  /** Command that fetches its stdin; undefined without stdin. */
  readonly delivery?: readonly string[] | undefined
}

interface Launched {
  readonly root: ProcessId
  readonly begin: () => void
  /** Lets it end without beginning, as it also does if the agent dies. */
  readonly abandon: () => void
  /** Resolves when the wrapper has ended. */
  readonly exited: Promise<void>
}

/** Quoted for a shell, with an empty environment so that it does not see the script's params. */
function deliveryOf({ delivery, tag }: Start): string | null {
  return delivery
    ? ['env', '-i', `PATH=${searchPath}`, `${tagVariable}=${tag}`, ...delivery].map(quoted).join(' ')
    : null
}

/** Starts a wrapper in its own session, where it waits for `begin`. Throws if refused (E2BIG, EAGAIN). */
export async function launch(start: Start, workDir: string): Promise<Launched> {
  const { directory, cgroup, limitGroups } = start
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
    blankExit(exit)
    const processes = cgroup === null ? 'ignore' : opened(join(cgroup, 'cgroup.procs'), 'w')
    const limits = limitGroups.map((group) => opened(join(group, 'cgroup.procs'), 'w'))
    const params = isHanded(start) ? openParams(paramsOf(start.program), start) : 'ignore'
    if (params !== 'ignore') open.push(params)
    const file = join(directory, 'wrapper')
    // With -c, bash as sh would not report a death by a signal.
    write(file, wrapper(limits.length, start), 0o600)
    const words = [file, ...command(start, workDir)]
    faultPoint('agent.launch.before')
    const child: ChildProcess = spawn('/bin/sh', words, {
      cwd: isHanded(start) ? '/' : workDir,
      env: environment(start, workDir),
      detached: true,
      stdio: ['pipe', stdout, stderr, exit, processes, params, ...limits],
    })
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', reject)
    })
    child.unref()
    const pid = child.pid ?? 0
    const goAhead = child.stdin
    // A wrapper killed meanwhile does not read; its exit reports that.
    goAhead?.on('error', () => {})
    return {
      root: { pid, startTime: startTimeOf(pid) ?? 0 },
      exited,
      begin: () => void goAhead?.end('go\n'),
      abandon: () => void goAhead?.destroy(),
    }
  } finally {
    for (const fd of open) closeSync(fd)
  }
}
