import { createHash } from 'node:crypto'
import type { Client, ConnectConfig } from 'ssh2'
import { printable } from '../../../core/text/printable.ts'
import type { Channel } from '../../../ssh/conversation.ts'
import type { Keys } from '../../storage/ports/keys.ts'
import type { HostRecord } from '../../storage/records/host.ts'

/** Characters of a message of the library, which may quote the host. */
const longestMessage = 300
/** Milliseconds between two signs of life, and how many may stay without an answer. */
const signEvery = 15_000
const mostMissed = 4

/** The kinds of host keys, by what signs with them: a host has one of each, and the pinned one may be of any. */
const kinds = [
  ['ssh-ed25519'],
  ['ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp384', 'ecdsa-sha2-nistp521'],
  ['rsa-sha2-512', 'rsa-sha2-256'],
] as const
type Kind = (typeof kinds)[number]

/** A host that has let us in. */
export interface Connection {
  /** Runs a line in the login shell there, without a terminal; nothing is forwarded. Errors: InstallFault, after `within` milliseconds too. */
  run(line: string, within: number): Promise<Channel>
  close(): void
}

/** Judges the key that a host shows, before anything of ours is sent; answers why it is not the one, or null. */
type JudgeKey = (key: string) => Promise<string | null>

/** How to log in to a host. */
export interface Access {
  readonly ip: string
  readonly port: number
  readonly username: string
  readonly login: { readonly password: string } | { readonly privateKey: string }
  /** The stored password, whatever the login is: sudo may ask for it. */
  readonly password: string | null
}

interface Attempt {
  readonly access: Access
  readonly judge: JudgeKey
  /** Milliseconds until it has let us in, whatever it is asked for until then. */
  readonly within: number
  readonly signal: AbortSignal
}

/**
 * Logs in to a host with its stored credentials. One whose key is not the judged one is asked for its keys of other kinds: the
 * pinned one may be of any. Errors: InstallFault.
 */
export async function connect(one: Attempt): Promise<Connection> {
  const { access, within, signal } = one
  const place = `${access.ip}:${access.port}`
  const late = AbortSignal.timeout(within)
  const ended = AbortSignal.any([signal, late])
  const first = await attempt(one, null, ended)
  let outcome = first
  for (const kind of kinds) {
    if (!('refused' in outcome)) break
    const next = await attempt(one, kind, ended)
    if (!('error' in next && hasNone(next.error))) outcome = next
  }
  if ('refused' in outcome) throw new InstallFault('refused' in first ? first.refused : outcome.refused)
  if ('error' in outcome && late.aborted)
    throw new InstallFault(`${place} did not let us in within ${within / 1000} s`)
  if ('error' in outcome) throw explained(outcome.error, access)
  const { client } = outcome
  // How its channels end says all.
  client.on('error', () => undefined)
  const close = () => void client.destroy()
  return {
    run: (line, within) =>
      new Promise((resolve, reject) => {
        const fail = (why: string) => reject(new InstallFault(why))
        const late = () => fail(`${place} let us in, but started no command within ${within / 1000} s`)
        AbortSignal.timeout(within).addEventListener('abort', late, { once: true })
        client.exec(line, { allowHalfOpen: true }, (error, channel) => {
          if (error) return fail(`the host starts no command: ${saidIn(error)}`)
          const closed = new Promise<number | null>((end) => {
            // Not by 'exit', which may come before this listens.
            channel.on('close', (code?: number | null) => end(code ?? null))
          })
          resolve({ stdin: channel, stdout: channel, stderr: channel.stderr, closed, close })
        })
      }),
    close,
  }
}

type Outcome = { client: Client } | { refused: string } | { error: SshError }

/** Given up when `ended` aborts. */
async function attempt(one: Attempt, kind: Kind | null, ended: AbortSignal): Promise<Outcome> {
  const { default: ssh2 } = await import('ssh2')
  const { access, judge } = one
  const client = new ssh2.Client()
  let refused: string | null = null
  const outcome = await new Promise<Outcome>((resolve) => {
    const abort = () => resolve({ error: new Error('it was given up') })
    if (ended.aborted) return abort()
    ended.addEventListener('abort', abort, { once: true })
    client
      .on('ready', () => resolve({ client }))
      .on('error', (error) => resolve(refused === null ? { error } : { refused }))
      .on('close', () => resolve({ error: new Error('the host closed it') }))
      .on('keyboard-interactive', (_name, _instructions, _language, prompts, answer) => {
        const isPassword = prompts.length === 1 && prompts[0]?.echo !== true && access.password !== null
        answer(isPassword ? [access.password ?? ''] : [])
      })
    const hostVerifier = (key: Buffer, verify: (isTaken: boolean) => void) => {
      judge(fingerprintOf(key)).then(
        (why) => {
          refused = why
          verify(why === null)
        },
        (error: Error) => {
          resolve({ error })
          verify(false)
        },
      )
    }
    try {
      client.connect({ ...settings(one, kind), hostVerifier })
    } catch (error) {
      // Of the key of ours, which it reads before it connects.
      resolve({ error: new Error(`the stored key cannot be used: ${(error as Error).message}`) })
    }
  })
  if (!('client' in outcome)) client.destroy()
  return outcome
}

function settings({ access }: Attempt, kind: Kind | null): ConnectConfig {
  const { ip, port, username, login } = access
  const isPassword = 'password' in login
  return {
    host: ip,
    port,
    username,
    ...login,
    // Some hosts ask for the same password in this way only.
    tryKeyboard: isPassword,
    authHandler: isPassword ? ['password', 'keyboard-interactive'] : ['publickey'],
    // Ours ends it, over all attempts.
    readyTimeout: 0,
    keepaliveInterval: signEvery,
    keepaliveCountMax: mostMissed,
    ...(kind !== null && { algorithms: { serverHostKey: [...kind] } }),
  }
}

/** Whether the library failed because the host has no key of this kind. */
const hasNone = (error: SshError) =>
  error.level === 'handshake' && /no matching host key/i.test(error.message)

type SshError = Error & { level?: string; code?: string | number }

function explained(error: SshError, { ip, port, username, login }: Access): InstallFault {
  const place = `${ip}:${port}`
  const { level, code } = error
  if (level === 'client-authentication')
    return new InstallFault(
      `${place} does not take the stored ${'password' in login ? 'password' : 'key'} of ${username}`,
    )
  if (code === 'ECONNREFUSED') return new InstallFault(`${place} refuses connections: does sshd run there?`)
  return new InstallFault(`no SSH connection to ${place}: ${saidIn(error)}`)
}

const saidIn = ({ message }: Error) => printable(message).slice(0, longestMessage)

/** As `ssh-keygen -l` shows it. */
const fingerprintOf = (key: Buffer): string =>
  `SHA256:${createHash('sha256').update(key).digest('base64').replace('=', '')}`

/** The stored credentials of a host, opened. Errors: InstallFault, which says what is missing and how it is given. */
export function accessOf(host: HostRecord, keys: Pick<Keys, 'open'>): Access {
  const { id, hostname, ip, sshPort: port, authType, username } = host
  const missing = (what: string, option: string) =>
    new InstallFault(`${hostname} has no ${what}: rsm hosts edit ${hostname} ${option}`)
  const opened = (field: 'password' | 'privateKey'): string | null => {
    const sealed = host[field]
    if (sealed === null) return null
    try {
      return keys.open(sealed, `hosts/${id}/${field}`)
    } catch {
      throw new InstallFault(
        `the stored ${field} of ${hostname} cannot be opened: the key that it was sealed with is gone; store it again`,
      )
    }
  }
  if (authType === 'NONE')
    throw missing('SSH credentials', '--ssh-user USER with --private-key FILE or --password-stdin')
  if (username === null) throw missing('SSH user', '--ssh-user USER and its credentials')
  const password = opened('password')
  if (authType === 'PASSWORD') {
    if (password === null) throw missing('SSH password', '--password-stdin')
    return { ip, port, username, login: { password }, password }
  }
  const privateKey = opened('privateKey')
  if (privateKey === null) throw missing('SSH key', '--private-key FILE')
  return { ip, port, username, login: { privateKey }, password }
}

/** Why an agent could not be installed, as the result of its host says it. */
export class InstallFault extends Error {
  /** As `ssh` has it: 255 where SSH itself failed, else that of what ran on the host. */
  readonly exitCode: number

  constructor(message: string, exitCode = 255) {
    super(message)
    this.exitCode = exitCode
  }
}
