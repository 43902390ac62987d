import { spawnSync } from 'node:child_process'
import { readFailure } from '../../ssh/remote-install.ts'
import { sanitize, sanitizeLine, shellWord } from '../text/sanitize.ts'

export interface Trouble {
  readonly isUnreachable: boolean
  /** From 1 to 255. */
  readonly exit: number
  readonly error: string
  readonly hint: string | null
}

interface Ended {
  /** Null if a signal ended it. */
  readonly exit: number | null
  readonly stdout: string
  /** Output of the host, and of a jump's ssh. */
  readonly stderr: string
  /** Log of the local ssh, which quotes a host's disconnect reason. */
  readonly ssh: string
}

const sshFailed = 255

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => sanitizeLine(line).trim())
    .filter((line) => line !== '')

/** Characters of a host's text that are quoted. */
const longestQuotation = 400
const longestAdvice = 4000

/** Quotes a host's text; never shown as advice of rsm, because a host can send anything. */
const hostSays = (text: string): string =>
  `the host says: "${sanitizeLine(text).trim().slice(0, longestQuotation)}"`

const hostAdvises = (text: string): string =>
  ['the host advises:', ...sanitize(text.slice(0, longestAdvice)).split('\n')].join('\n> ')

/** Splits the log of the local ssh: its own lines, and those of the host from `Received disconnect` on. */
function partsOf(ssh: string): { own: string; theirs: string } {
  const at = ssh.search(/^Received disconnect from /m)
  return at < 0 ? { own: ssh, theirs: '' } : { own: ssh.slice(0, at), theirs: ssh.slice(at) }
}

function settingsFor(words: readonly string[]): (name: string) => string | undefined {
  const { stdout } = spawnSync('ssh', ['-G', ...words], { encoding: 'utf8' })
  return (name) => new RegExp(`^${name} (\\S+)`, 'm').exec(stdout)?.[1]
}

/** Command that removes the host's old key. */
function forgetHint(words: readonly string[], host: string): string {
  const setting = settingsFor(words)
  const port = setting('port') ?? '22'
  const name = setting('hostkeyalias') ?? setting('hostname') ?? host
  const file = setting('userknownhostsfile')
  const at = shellWord(port === '22' ? name : `[${name}]:${port}`)
  return `ssh-keygen ${file === undefined ? '' : `-f ${shellWord(file)} `}-R ${at}`
}

/** Command that adds an unknown host's key; uses host and port from the ssh configuration. */
function keyHint(words: readonly string[], host: string): string {
  const setting = settingsFor(words)
  const isDirect = ['proxyjump', 'proxycommand', 'hostkeyalias'].every((name) => setting(name) === undefined)
  if (!isDirect) return `log in once and compare its key: ssh ${shellWord(host)}; or add --accept-new`
  const port = setting('port') ?? '22'
  const at = `${port === '22' ? '' : `-p ${port} `}${shellWord(setting('hostname') ?? host)}`
  const file = shellWord(setting('userknownhostsfile') ?? '~/.ssh/known_hosts')
  return `ssh-keyscan ${at} >> ${file}\nand compare the keys with those of the hosts; or add --accept-new`
}

const unreachable = (error: string, hint: string | null = null): Trouble => ({
  isUnreachable: true,
  exit: sshFailed,
  error,
  hint,
})

/** Why ssh could not connect, or why a remote command ended like ssh does. `words`: arguments of `ssh`. */
export function sshTrouble(
  { ssh, stderr }: Pick<Ended, 'ssh' | 'stderr'>,
  words: readonly string[],
  host: string,
): Trouble {
  const { own, theirs } = partsOf(ssh)
  const lines = linesOf(own)
  const others = linesOf(stderr)
  const last = lines.findLast((line) => !/^kex_exchange_identification|^Connection closed by/.test(line))
  if (/^@ +WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED/m.test(own))
    return unreachable(
      'host key changed: this is a different host, or someone is intercepting the connection; nothing was sent',
      `once you know that it is the right one: ${forgetHint(words, host)}`,
    )
  if (/^Host key verification failed/m.test(own))
    return unreachable('its host key is not known', keyHint(words, host))
  // A jump's ssh writes to the same stream as the host.
  const isOfJump = lines.length > 0 && others.some((line) => line === 'Host key verification failed.')
  if (isOfJump)
    return unreachable(
      'the host key of the jump host is not known',
      'log in to the jump host once and compare its key',
    )
  if (theirs !== '') return unreachable(`it disconnected: ${hostSays(theirs)}`)
  const other = others.at(-1)
  if (last === undefined && other !== undefined)
    return unreachable(`it ended while logging in: ${hostSays(other)}`)
  const said = (last ?? lines.at(-1) ?? 'ssh ended without a message').replace(/^ssh: /, '')
  if (/Permission denied/.test(said))
    return unreachable(
      said,
      'ssh must log in without prompting: add a key to your ssh-agent, or set --ssh-user',
    )
  return unreachable(said)
}

/** Error of a `rsm … --json` on a host. */
function rsmError(lines: readonly string[]): Pick<Trouble, 'exit' | 'error' | 'hint'> | null {
  const failure = readFailure(lines.findLast((each) => each.startsWith('{"error":')) ?? '')
  if (failure === null) return null
  const { exit, message, hint } = failure
  return { exit, error: hostSays(message), hint: hint === null ? null : hostAdvises(hint) }
}

function sudoTrouble(lines: readonly string[]): Pick<Trouble, 'error' | 'hint'> | null {
  if (lines.some((line) => /try again|incorrect password/.test(line)))
    return { error: 'sudo rejected the password', hint: null }
  const has = (words: RegExp) => lines.some((line) => words.test(line))
  if (has(/^sudo: a password is required/))
    return {
      error: 'sudo asks for a password',
      hint: '--ask-sudo-password asks you for it, once for all hosts',
    }
  if (has(/^sudo: .*must have a tty/))
    return {
      error: 'sudo requires a terminal',
      hint: 'its sudoers has requiretty; lift that for this user: Defaults:USER !requiretty',
    }
  // Ignore that sudo cannot resolve the host's own name.
  const line = lines.findLast(
    (each) =>
      /^sudo: |not in the sudoers|not allowed to execute/.test(each) && !/unable to resolve host/.test(each),
  )
  return line === undefined ? null : { error: hostSays(line), hint: null }
}

/** Why it ended on the host, from its output. */
export function hostTrouble({ exit, stdout, stderr, ssh }: Ended, doing: string): Trouble {
  const lines = linesOf(stderr)
  const isUnreachable = false
  const code = exit === null || exit === 0 ? 1 : exit
  const own = rsmError(lines)
  if (own !== null) return { isUnreachable, ...own }
  const said = lines.findLast((line) => line.startsWith('rsm: '))
  if (said !== undefined)
    return { isUnreachable, exit: code, error: hostSays(said.slice('rsm: '.length)), hint: null }
  const sudo = sudoTrouble(lines)
  if (sudo !== null) return { isUnreachable, exit: code, ...sudo }
  const { own: ownWords, theirs } = partsOf(ssh)
  const lost = theirs === '' ? linesOf(ownWords).at(-1) : hostSays(theirs)
  const last = lines.at(-1) ?? linesOf(stdout).at(-1)
  const why = last === undefined ? `exit ${exit ?? 'unknown'} without a message` : hostSays(last)
  return { isUnreachable, exit: code, error: `it ended while ${doing}: ${lost ?? why}`, hint: null }
}
