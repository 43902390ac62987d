import { chmodSync, chownSync, existsSync, writeFileSync } from 'node:fs'
import { access } from 'node:fs/promises'
import { basename, isAbsolute, join } from 'node:path'
import { RsmError } from '../../core/errors.ts'
import type { TerminalOpen } from '../../core/protocol/messages.ts'
import type { RunnerOptions } from '../executions/runner-options.ts'
import { type Account, barredUser, dropTo, findAccount } from '../processes/account.ts'
import { usualAttributes } from '../processes/attributes.ts'
import { existing } from '../processes/file-systems.ts'
import { runtimeOf } from '../processes/launch.ts'
import { tagVariable } from '../processes/machine.ts'
import { findInPath, isExecutable, quoted, searchPath } from '../processes/programs.ts'
import type { Sandbox } from '../processes/sandbox.ts'

const loginShells = new Set(['sh', 'bash', 'dash', 'ash', 'ksh', 'mksh', 'zsh', 'fish', 'csh', 'tcsh'])
/** Shells of accounts without a login. */
const noShells = new Set(['nologin', 'false'])
/** Fallbacks for a TERM that is missing, or unknown to the host; the first known one is used. */
const fallbackTerms = ['xterm-256color', 'xterm'] as const
const termPattern = /^[A-Za-z0-9][\w.+-]{0,63}$/
/** Directories that ncurses searches after `~/.terminfo`. */
const terminfoPlaces = [
  '/etc/terminfo',
  '/lib/terminfo',
  '/usr/share/terminfo',
  '/usr/lib/terminfo',
  '/usr/local/share/terminfo',
]

/** Enters the terminal's cgroups before the shell starts. */
const enter = () => `while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs" || exit 126; shift; done
shift
[ -z "$1" ] || exec <"$1" || exit 126
shift
[ -z "$1" ] || echo "$1"
shift
umask 022
${usualAttributes()}
exec "$@"`

/** In a sandbox: enters the home directory as the terminal's user. */
const enterHome = 'cd -- "$1" || exit 126; shift; exec "$@"'

type LoginOptions = Pick<RunnerOptions, 'runAs' | 'allowRunAs' | 'own' | 'sandbox'>

interface Login {
  readonly account: Account
  readonly shell: string
  readonly home: string
  readonly term: string
  /** A line for the user if `term` is not the client's; empty otherwise. */
  readonly notice: string
}

/** @throws RsmError with the reason why this terminal cannot be opened. */
export async function login(open: TerminalOpen, options: LoginOptions): Promise<Login> {
  const { own, runAs, sandbox } = options
  const user = open.runAs ?? runAs
  const barred = barredUser(user, options)
  if (barred !== null) throw new RsmError('forbidden', barred)
  const account = user === own.name ? own : await findAccount(user)
  sandbox.admit(account)
  const [shell, home] = [findShell(open.shell, account), await existing(account.home)]
  return { account, shell, home, ...(await chooseTerm(open.term, home)) }
}

/** Whether terminfo has an entry; its directory is the first letter, on some systems in hexadecimal. */
async function isKnown(term: string, places: readonly string[]): Promise<boolean> {
  const letters = [term.charAt(0), term.charCodeAt(0).toString(16)]
  for (const place of places)
    for (const letter of letters) {
      const found = await access(join(place, letter, term)).then(
        () => true,
        () => false,
      )
      if (found) return true
    }
  return false
}

async function chooseTerm(
  asked: string | undefined,
  home: string,
): Promise<{ term: string; notice: string }> {
  const [fallback] = fallbackTerms
  const term = asked !== undefined && termPattern.test(asked) ? asked : fallback
  const places = [join(home, '.terminfo'), ...terminfoPlaces]
  // Programs need no entry for `dumb`, a terminal without controls.
  if (term === 'dumb' || (await isKnown(term, places))) return { term, notice: '' }
  for (const other of fallbackTerms)
    if (await isKnown(other, places))
      return {
        term: other,
        notice: `rsm: this host has no terminfo entry for TERM=${term}; using ${other}`,
      }
  // On a host without terminfo, programs need no entry.
  return { term, notice: '' }
}

/** node-pty does not report a missing program: it would exit with 1. */
function findShell(asked: string | undefined, account: Account): string {
  const name = asked ?? account.shell
  const path = isAbsolute(name) ? name : name.includes('/') ? undefined : findInPath(name)
  if (path === undefined || !existsSync(path))
    throw new RsmError('not_found', `there is no shell ${name} on this host`)
  if (!isExecutable(path)) throw new RsmError('not_found', `${name} is not a program on this host`)
  if (asked === undefined && noShells.has(basename(path)))
    throw new RsmError(
      'not_found',
      `the login shell of ${account.name} is ${path}: choose another, such as --shell bash`,
    )
  return path
}

function environment(
  { trueColor }: TerminalOpen,
  { account, shell, term }: Login,
  { tag, sandbox }: Pick<Place, 'tag' | 'sandbox'>,
): Record<string, string> {
  const language = process.env['LANG'] ?? ''
  return {
    PATH: searchPath,
    HOME: account.home,
    USER: account.name,
    LOGNAME: account.name,
    SHELL: shell,
    ...runtimeOf(account, sandbox),
    LANG: /utf-?8/i.test(language) ? language : 'C.UTF-8',
    TERM: term,
    ...(trueColor ? { COLORTERM: 'truecolor' } : {}),
    [tagVariable]: tag,
  }
}

interface Command {
  readonly words: readonly string[]
  /** Text of its script file, if it needs one. */
  readonly script: string | null
}

/** Runs a command from a file, like scripts, because all users of a host can see arguments. */
function command(
  open: TerminalOpen,
  { account, shell, home }: Login,
  sandbox: Sandbox,
  file: string,
): Command {
  const interactive = loginShells.has(basename(shell)) ? [shell, '-l'] : [shell]
  const isShell = open.command === undefined
  const interpreter = isShell ? ['/bin/sh'] : [shell]
  const enclosed = sandbox.enclose(account, { enter: enterHome, workDir: home, interpreter, script: file })
  const login = `exec ${interactive.map(quoted).join(' ')}\n`
  if (enclosed) return { words: enclosed, script: open.command ?? login }
  const as = account.uid === process.getuid?.() ? [] : dropTo(account)
  if (open.command === undefined) return { words: [...as, ...interactive], script: null }
  return { words: [...as, shell, file], script: open.command }
}

interface Place {
  readonly directory: string
  readonly groups: readonly string[]
  readonly tag: string
  readonly sandbox: Sandbox
}

/** Start of a terminal's program, after writing its script file; `groups` are cgroups it must enter. */
export function prepareShell(
  open: TerminalOpen,
  user: Login,
  place: Place,
): { argv: string[]; env: Record<string, string>; cwd: string } {
  const { directory, groups, sandbox } = place
  const { account, home } = user
  const file = join(directory, 'script')
  const { words, script } = command(open, user, sandbox, file)
  const stdin = open.command !== undefined && open.noStdin ? '/dev/null' : ''
  if (script !== null) {
    writeFileSync(file, script, { mode: 0o700 })
    if (account.uid !== process.getuid?.()) {
      chmodSync(directory, 0o711)
      chownSync(file, account.uid, account.gid)
    }
  }
  return {
    argv: ['/bin/sh', '-c', enter(), 'sh', ...groups, '--', stdin, user.notice, ...words],
    env: environment(open, user, place),
    cwd: sandbox.mode === 'strict' ? '/' : home,
  }
}
