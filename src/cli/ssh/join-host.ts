import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exitCode, RsmError } from '../../core/errors.ts'
import type { Stream } from '../../core/tasks/task.ts'
import { type Channel, type Executable, GivenUp, install, type Patience } from '../../ssh/conversation.ts'
import { readInstalled, type Sudo } from '../../ssh/remote-install.ts'
import { sanitizeLine, shellWord } from '../text/sanitize.ts'
import { cancelled, failed, type JoinOutcome } from './outcome.ts'
import { hostTrouble, sshTrouble, type Trouble } from './trouble.ts'

/** Options of `rsm hosts join --ssh` for all its hosts. */
export interface JoinSetting extends SshOptions {
  readonly sudo: Sudo
  readonly sudoPassword: string | undefined
  readonly prefix: string | undefined
  /** Changes settings of an earlier installation without asking. */
  readonly yes: boolean
  readonly executableFor: (arch: string) => Promise<Executable>
  /** Creates a token for one host; returns its join string. */
  readonly joinString: () => Promise<string>
  readonly signal: AbortSignal
}

/** Milliseconds. */
const patience: Patience = {
  start: 60_000,
  inspect: 120_000,
  piece: 60_000,
  place: 120_000,
  install: 200_000,
}

/** Installs the agent and waits until it is linked (contract §10); `tell` gets e.g. `copying 45 %`. */
export async function joinHost(
  host: string,
  setting: JoinSetting,
  tell: (progress: string) => void,
): Promise<JoinOutcome> {
  const { prefix, yes, signal } = setting
  const words = sshWords(host, setting)
  const said: Record<Stream, string> = { stdout: '', stderr: '' }
  let copied = false
  let log = () => ''
  try {
    const { exit, step, result } = await install({
      ...setting,
      patience,
      options: [...(yes ? ['--yes'] : []), ...(prefix === undefined ? [] : ['--prefix', shellWord(prefix)])],
      open(line) {
        const ssh = runSsh([...words, line])
        log = ssh.log
        return ssh
      },
      onLine(stream, line) {
        said[stream] += `${line}\n`
      },
      doing(step, percent) {
        copied ||= step === 'copying'
        tell(percent === undefined ? step : `${step} ${percent} %`)
      },
    })
    const joined = exit === 0 && step === 'installing' ? readInstalled(result)?.joined : undefined
    if (joined !== undefined) {
      const { hostId, hostname, agentId } = joined
      const names = { hostname: sanitizeLine(hostname), agentId: sanitizeLine(agentId) }
      return { host, status: 'JOINED', exitCode: 0, error: null, hint: null, copied, hostId, ...names }
    }
    const isSsh = (exit === 255 || exit === null) && step === 'logging in'
    const all = { exit, ssh: log(), stderr: said.stderr, stdout: said.stdout + result }
    return failed(host, copied, isSsh ? sshTrouble(all, words, host) : hostTrouble(all, step))
  } catch (error) {
    return signal.aborted ? cancelled(host) : failed(host, copied, troubleOf(error))
  }
}

function troubleOf(error: unknown): Trouble {
  if (error instanceof RsmError)
    return { isUnreachable: false, exit: exitCode(error), error: error.message, hint: error.hint ?? null }
  if (!(error instanceof GivenUp)) throw error
  const { step, silent, message } = error
  const isUnreachable = step === 'logging in'
  const why = silent === null ? message : `no response for ${silent / 1000} s while ${step}`
  return { isUnreachable, exit: isUnreachable ? 255 : 1, error: why, hint: null }
}

/** Options of ssh (contract §10). */
interface SshOptions {
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
function sshWords(host: string, { user, jump, acceptNew }: SshOptions): string[] {
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
function runSsh(words: readonly string[]): Channel & { readonly log: () => string } {
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
