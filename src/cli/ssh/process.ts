import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Channel } from '../../ssh/conversation.ts'

/** Options of ssh (contract §10). */
export interface SshOptions {
  readonly user?: string | undefined
  readonly jump?: string | undefined
  /** Adds keys of unknown hosts to known_hosts. */
  readonly acceptNew: boolean
}

/** Seconds to establish a connection. */
const connectTimeout = 15

const settings = [
  'BatchMode=yes',
  `ConnectTimeout=${connectTimeout}`,
  'ServerAliveInterval=15',
  'ServerAliveCountMax=4',
  'ClearAllForwardings=yes',
  'ForwardAgent=no',
  'ForwardX11=no',
  'RemoteCommand=none',
  // Errors only, without banners and warnings.
  'LogLevel=ERROR',
]

/** Arguments of `ssh` before the command. Everything else follows the user's configuration. */
export function sshWords(host: string, { user, jump, acceptNew }: SshOptions): string[] {
  const all = acceptNew ? [...settings, 'StrictHostKeyChecking=accept-new'] : settings
  return [
    '-T',
    ...all.flatMap((setting) => ['-o', setting]),
    ...(user === undefined ? [] : ['-l', user]),
    ...(jump === undefined ? [] : ['-J', jump]),
    '--',
    host,
  ]
}

/**
 * Runs `ssh` in its own session, so that it and its jump's ssh cannot prompt, and one signal ends both. `log`
 * returns its errors once it ended; it also writes a host's disconnect reason there.
 */
export function runSsh(words: readonly string[]): Channel & { readonly log: () => string } {
  const directory = mkdtempSync(join(tmpdir(), 'rsm-ssh-'))
  const file = join(directory, 'log')
  const child = spawn('ssh', ['-E', file, ...words], {
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
    env: { ...process.env, SSH_ASKPASS_REQUIRE: 'never' },
  })
  const { stdin, stdout, stderr, pid } = child
  let log = ''
  let isOver = false
  const closed = new Promise<number | null>((resolve) => {
    const end = (exit: number | null, said: string) => {
      log += said
      isOver = true
      rmSync(directory, { recursive: true, force: true })
      resolve(exit)
    }
    child.once('error', ({ message }) => end(null, `${message}\n`))
    child.once('close', (exit) => end(exit, readIfThere(file)))
  })
  function close(): void {
    if (isOver || pid === undefined) return
    try {
      process.kill(-pid, 'SIGTERM')
    } catch {
      // Already ended.
    }
  }
  return { stdin, stdout, stderr, closed, close, log: () => log }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
