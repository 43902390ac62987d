import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Which ssh is run (contract §10). */
export interface SshOptions {
  readonly user?: string | undefined
  readonly jump?: string | undefined
  /** Takes up keys of hosts that are not known yet. */
  readonly acceptNew: boolean
}

/** Seconds until a connection has to stand. */
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
  // Errors only: banners and warnings are none of ours.
  'LogLevel=ERROR',
]

/** The words of `ssh` before the command. What its user has configured holds for all else. */
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

/** How the ssh of a host ended, and what was said until then. */
export interface Ended {
  /** Null where it was ended by us, or by a signal. */
  readonly exit: number | null
  readonly stdout: string
  /** Of the host, and of the ssh of a jump. */
  readonly stderr: string
  /** Of the local ssh, which quotes there what a host gives as its reason to disconnect. */
  readonly ssh: string
}

/** It ended, or went silent, before it said what was waited for. */
export class CutShort extends Error {
  readonly ended: Ended
  /** Milliseconds that were waited; null where it ended by itself. */
  readonly silent: number | null

  constructor(ended: Ended, silent: number | null = null) {
    super('ssh ended too early')
    this.ended = ended
    this.silent = silent
  }
}

/** Characters that are kept of what a host says: a conversation of ours has some thousand. */
const mostSaid = 256 * 1024

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** One `ssh`, in a session of its own: without our terminal it, and the ssh of its jump, can ask nobody; one signal ends both. */
export class SshSession {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #mark: string
  /** With the errors of ssh. */
  readonly #directory = mkdtempSync(join(tmpdir(), 'rsm-ssh-'))
  readonly #changed = new EventEmitter()
  #stdout = ''
  #stderr = ''
  #ssh = ''
  #exit: number | null = null
  #isOver = false

  constructor(words: readonly string[], mark: string) {
    this.#mark = mark
    const log = join(this.#directory, 'log')
    this.#child = spawn('ssh', ['-E', log, ...words], {
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      env: { ...process.env, SSH_ASKPASS_REQUIRE: 'never' },
    })
    const { stdin, stdout, stderr } = this.#child
    // Whoever ends early does not read all of it; how it ended says more.
    stdin.on('error', () => {})
    stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text
      this.#heard(this.#stdout)
    })
    stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text
      // sudo asks once more: the password would be wrong again, and some systems lock who tries too often.
      if (/^Sorry, try again/m.test(this.#stderr)) this.end()
      this.#heard(this.#stderr)
    })
    this.#child.once('error', (error) => {
      this.#ssh = `${error.message}\n`
      this.#end(null)
    })
    this.#child.once('close', (exit) => {
      this.#ssh += readIfThere(log)
      this.#end(exit)
    })
  }

  #heard(all: string): void {
    if (all.length > mostSaid) this.kill()
    this.#changed.emit('change')
  }

  #end(exit: number | null): void {
    this.#isOver = true
    this.#exit = exit
    rmSync(this.#directory, { recursive: true, force: true })
    this.#changed.emit('change')
  }

  get #ended(): Ended {
    return { exit: this.#exit, stdout: this.#stdout, stderr: this.#stderr, ssh: this.#ssh }
  }

  write(text: string): void {
    this.#child.stdin.write(text)
  }

  end(): void {
    this.#child.stdin.end()
  }

  /** Sends all of it; `sent` hears of each piece. Rejects with `CutShort` where nothing is taken for so many milliseconds. */
  async send(source: Readable, patience: number, sent: (bytes: number) => void): Promise<void> {
    const stalled = new AbortController()
    const timer = setTimeout(() => stalled.abort(), patience)
    source.on('data', (chunk: Buffer) => {
      timer.refresh()
      sent(chunk.length)
    })
    try {
      await pipeline(source, this.#child.stdin, { end: false, signal: stalled.signal })
    } catch (error) {
      if (stalled.signal.aborted) return this.#giveUp(patience)
      // A file of ours that can't be read; else the host is what ended.
      if ((error as NodeJS.ErrnoException).syscall === 'read') throw error
      await this.over(patience)
      throw new CutShort(this.#ended)
    } finally {
      clearTimeout(timer)
    }
  }

  /** The words behind `MARK word`, once the host has said that. Rejects with `CutShort`. */
  async heard(word: string, patience: number): Promise<string[]> {
    const line = new RegExp(`^${this.#mark} ${word}\\b *(.*)\\r?\\n`, 'm')
    await this.#until(() => line.test(this.#stdout), patience)
    return line.exec(this.#stdout)?.[1]?.split(' ') ?? []
  }

  /** How it ended. Rejects with `CutShort` where it does not. */
  async over(patience: number): Promise<Ended> {
    await this.#until(() => this.#isOver, patience)
    return this.#ended
  }

  async #until(isSo: () => boolean, patience: number): Promise<void> {
    const late = AbortSignal.timeout(patience)
    while (!isSo()) {
      if (this.#isOver) throw new CutShort(this.#ended)
      try {
        await once(this.#changed, 'change', { signal: late })
      } catch {
        this.#giveUp(patience)
      }
    }
  }

  #giveUp(patience: number): never {
    this.kill()
    throw new CutShort(this.#ended, patience)
  }

  /** Ends it and the ssh of its jump. */
  kill(): void {
    if (this.#isOver || this.#child.pid === undefined) return
    try {
      process.kill(-this.#child.pid, 'SIGTERM')
    } catch {
      // It has ended.
    }
  }
}
