import { chownSync, existsSync, writeFileSync } from 'node:fs'
import { basename, isAbsolute, join } from 'node:path'
import { RsmError } from '../../core/errors.ts'
import type { TerminalOpen } from '../../core/protocol/messages.ts'
import type { RunnerOptions } from '../executions/runner-options.ts'
import { markVariable } from '../processes/machine.ts'
import { limitOpenFiles } from '../processes/open-files.ts'
import { type Account, findAccount } from '../script/account.ts'
import { barredUser, dropTo } from '../script/privileges.ts'
import type { Sandbox } from '../script/sandbox.ts'
import { findInPath, isExecutable, searchPath } from '../script/search-path.ts'
import { existing } from '../script/working-directory.ts'

/** The shells that take `-l` for "as at a login". */
const loginShells = new Set(['sh', 'bash', 'dash', 'ash', 'ksh', 'mksh', 'zsh', 'fish', 'csh', 'tcsh'])
/** What accounts have for a shell that nobody is to log in to. */
const noShells = new Set(['nologin', 'false'])
const usualTerm = 'xterm-256color'

/**
 * Enters the cgroups that hold and limit the terminal before anything of it runs, and hands the script on by a
 * descriptor, as the agent's directory is closed to other users and to a sandbox.
 */
const enter = `while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs" || exit 126; shift; done
shift
[ -z "$1" ] || exec 5<"$1" || exit 126
[ -z "$2" ] || exec <"$2" || exit 126
shift 2
umask 022
${limitOpenFiles}
exec "$@"`

type Whose = Pick<RunnerOptions, 'runAs' | 'allowRunAs' | 'own' | 'sandbox'>

/** Whom a terminal runs as, with which shell, and where. */
interface Login {
  readonly account: Account
  readonly shell: string
  /** Where it begins. */
  readonly home: string
}

/** @throws RsmError with why this terminal can't be opened here. */
export async function login(open: TerminalOpen, options: Whose): Promise<Login> {
  const { own, runAs, sandbox } = options
  const user = open.runAs ?? runAs
  const barred = barredUser(user, options)
  if (barred !== null) throw new RsmError('forbidden', barred)
  const account = user === own.name ? own : await findAccount(user)
  sandbox.admit(account)
  return { account, shell: findShell(open.shell, account), home: await existing(account.home) }
}

/** node-pty would say nothing of a program that is missing: it would exit with 1. */
function findShell(asked: string | undefined, account: Account): string {
  const name = asked ?? account.shell
  const path = isAbsolute(name) ? name : name.includes('/') ? undefined : findInPath(name)
  if (path === undefined || !existsSync(path))
    throw new RsmError('not_found', `there is no shell ${name} on this host`)
  if (!isExecutable(path)) throw new RsmError('not_found', `${name} is not a program of this host`)
  if (asked === undefined && noShells.has(basename(path)))
    throw new RsmError(
      'not_found',
      `the login shell of ${account.name} is ${path}: name another, as --shell bash`,
    )
  return path
}

function environment(
  { term }: TerminalOpen,
  { account, shell }: Login,
  mark: string,
): Record<string, string> {
  const language = process.env['LANG'] ?? ''
  return {
    PATH: searchPath,
    HOME: account.home,
    USER: account.name,
    LOGNAME: account.name,
    SHELL: shell,
    LANG: /utf-?8/i.test(language) ? language : 'C.UTF-8',
    TERM: term !== undefined && /^[A-Za-z0-9][\w.+-]{0,63}$/.test(term) ? term : usualTerm,
    COLORTERM: 'truecolor',
    [markVariable]: mark,
  }
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}

interface Command {
  readonly words: readonly string[]
  /** The text of a script that is run by it. */
  readonly script: string | null
  /** Whether it reads that script by a descriptor. */
  readonly takesDescriptor: boolean
}

/** A command is run from a file as scripts are: arguments are seen by all users of a host. */
function command(
  open: TerminalOpen,
  { account, shell, home }: Login,
  sandbox: Sandbox,
  file: string,
): Command {
  const interactive = loginShells.has(basename(shell)) ? [shell, '-l'] : [shell]
  const isShell = open.command === undefined
  const enclosed = sandbox.enclose(account, home, isShell ? ['/bin/sh'] : [shell])
  const login = `exec ${interactive.map(quoted).join(' ')}\n`
  if (enclosed) return { words: enclosed, script: open.command ?? login, takesDescriptor: true }
  const isOwn = account.uid === process.getuid?.()
  const as = isOwn ? [] : dropTo(account)
  if (open.command === undefined)
    return { words: [...as, ...interactive], script: null, takesDescriptor: false }
  const words = [...as, shell, isOwn ? file : '/proc/self/fd/5']
  return { words, script: open.command, takesDescriptor: !isOwn }
}

/** How the program of a terminal is started, and the file of its script written; `groups` are cgroups that it has to enter. */
export function prepareShell(
  open: TerminalOpen,
  who: Login,
  place: { directory: string; groups: readonly string[]; mark: string; sandbox: Sandbox },
): { argv: string[]; env: Record<string, string>; cwd: string } {
  const { directory, groups, mark, sandbox } = place
  const { account, home } = who
  const file = join(directory, 'script')
  const { words, script, takesDescriptor } = command(open, who, sandbox, file)
  const stdin = open.command !== undefined && open.noStdin ? '/dev/null' : ''
  if (script !== null) {
    writeFileSync(file, script, { mode: 0o700 })
    if (account.uid !== process.getuid?.()) chownSync(file, account.uid, account.gid)
  }
  return {
    argv: ['/bin/sh', '-c', enter, 'sh', ...groups, '--', takesDescriptor ? file : '', stdin, ...words],
    env: environment(open, who, mark),
    cwd: sandbox.mode === 'strict' ? '/' : home,
  }
}
