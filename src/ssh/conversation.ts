import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import type { Stream } from '../core/tasks/task.ts'
import { ownText } from '../disk/own-files.ts'
import { remoteLine, type Sudo } from './remote-install.ts'

/** A command that runs on a host. */
export interface Channel {
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** Resolves with the exit code, or null without one, after the command ended and its output was read. */
  readonly closed: Promise<number | null>
  readonly close: () => void
}

export interface Executable {
  readonly sha256: string
  /** Bytes. */
  readonly size: number
  readonly open: () => Readable
}

export type Step = 'logging in' | 'looking' | 'copying' | 'installing'

/** Timeouts in milliseconds. */
export interface Patience {
  /** To start the installer, after sudo. */
  readonly start: number
  readonly inspect: number
  /** To accept the next piece of the copy. */
  readonly piece: number
  /** To move the copy into place. */
  readonly place: number
  /** To install: `rsm agent install` waits 90 s for systemd and 60 s for the link. */
  readonly install: number
}

/** The client's side of an installation. */
export interface Installation {
  /** Runs a line in the login shell of the host, without a terminal. */
  open(line: string): Channel | Promise<Channel>
  readonly sudo: Sudo
  readonly sudoPassword: string | undefined
  /** Options of `rsm agent install`, quoted for a shell. */
  readonly options: readonly string[]
  /** The value of `--prefix`. */
  readonly prefix?: string | undefined
  readonly patience: Patience
  readonly signal: AbortSignal
  /** Receives each line of the host that is not for us. */
  onLine(stream: Stream, line: string): void
  /** `percent` of the copy. */
  doing?(step: Step, percent?: number): void
  /** The host already has the executable. */
  found?(program: string): void
  executableFor(arch: string): Promise<Executable>
  joinString(): Promise<string>
}

/** How the installer ended. */
export interface Ended {
  /** Null without an exit code. */
  readonly exit: number | null
  /** Ended early in any step but `installing`. */
  readonly step: Step
  /** The output of `rsm agent install --json`. */
  readonly result: string
}

/** The host was silent for too long, or sent too much output. */
export class GivenUp extends Error {
  readonly step: Step
  /** Milliseconds of silence; null after too much output. */
  readonly silent: number | null

  constructor(message: string, step: Step, silent: number | null = null) {
    super(message)
    this.step = step
    this.silent = silent
  }
}

/** Characters: of a line, and of the whole output; the installer prints a few hundred. */
const longestLine = 64 * 1024
const maxOutput = 1024 * 1024
/** Counted per line beside its characters, because it is stored as an entry of its own. */
const perLine = 64

/**
 * Runs `install.sh --over-ssh` on a host until it ends, early or with the agent's installation. Errors: GivenUp; the reason of the
 * signal; those of `open`, `executableFor` and `joinString`.
 */
export async function install(by: Installation): Promise<Ended> {
  const { patience, prefix } = by
  const marker = randomBytes(12).toString('hex')
  const script = ownText('packaging/install.sh')
  const words = ['rsm', 'agent', 'install', '-', '--json', ...by.options]
  const line = remoteLine({ sudo: by.sudo, marker, scriptSize: Buffer.byteLength(script), words })
  const { stdin, stdout, stderr, closed, close } = await by.open(line)
  const stop = new AbortController()
  const signal = AbortSignal.any([by.signal, stop.signal])
  const changed = new EventEmitter()
  const answers = new Map<string, readonly string[]>()
  let step: Step = 'logging in'
  let result = ''
  let received = 0
  let ended = null as Ended | null

  function receiveLine(stream: Stream, line: string): void {
    if (signal.aborted) return
    received += line.length + perLine
    if (received > maxOutput) return stop.abort(new GivenUp('the host sent too much output', step))
    const [first, word = '', ...rest] = line.trimEnd().split(' ')
    if (stream === 'stdout' && first === marker) answers.set(word, rest)
    else if (stream === 'stdout' && answers.has('result')) result += `${line}\n`
    else by.onLine(stream, line)
    // Close stdin when sudo asks again, because some systems lock accounts after repeated failures.
    if (by.sudo === 'password' && stream === 'stderr' && line.startsWith('Sorry, try again')) stdin.end()
    changed.emit('change')
  }

  async function until<T>(found: () => T | undefined, within: number, silence: string): Promise<T> {
    const giveUp = () => stop.abort(new GivenUp(`${silence} for ${within / 1000} s`, step, within))
    const timer = setTimeout(giveUp, within)
    try {
      for (;;) {
        const value = found()
        if (value !== undefined) return value
        await once(changed, 'change', { signal })
      }
    } finally {
      clearTimeout(timer)
    }
  }

  const answer = (word: string, within: number) =>
    until(() => answers.get(word), within, 'no output from the installer')

  function begin(next: Step): void {
    step = next
    by.doing?.(step)
  }

  async function copy({ sha256, size, open }: Executable): Promise<void> {
    begin('copying')
    stdin.write(`copy ${sha256} ${size}\n`)
    let sent = 0
    for await (const piece of open() as AsyncIterable<Buffer>) {
      stdin.write(piece)
      await until(() => !stdin.writableNeedDrain || undefined, patience.piece, 'the host accepted no data')
      signal.throwIfAborted()
      sent += piece.length
      by.doing?.(step, Math.floor((sent / size) * 100))
    }
  }

  async function provide(): Promise<void> {
    const [arch = '', placed, packaged] = await answer('host', patience.inspect)
    const executable = await by.executableFor(arch)
    const isPackaged = packaged === executable.sha256 && prefix === undefined
    if (placed !== executable.sha256 && !isPackaged) return copy(executable)
    const program = placed === executable.sha256 ? `${prefix ?? '/usr/local'}/bin/rsm` : '/usr/bin/rsm'
    by.found?.(program)
    stdin.write(`use ${program}\n`)
  }

  signal.addEventListener('abort', close, { once: true })
  // The exit of the command is more informative.
  stdin.on('error', () => {})
  stdin.on('drain', () => changed.emit('change'))
  lines(stdout, (line) => receiveLine('stdout', line))
  lines(stderr, (line) => receiveLine('stderr', line))
  void closed.then((exit) => {
    // After an abort we ended it ourselves: the reason of the signal is more informative.
    if (!signal.aborted) ended = { exit, step, result }
    stop.abort()
  })
  try {
    by.doing?.(step)
    if (by.sudoPassword !== undefined) stdin.write(`${by.sudoPassword}\n`)
    await answer('shell', patience.start)
    begin('looking')
    stdin.write(`${marker}\n${script}`)
    await provide()
    await answer('ready', patience.place)
    begin('installing')
    stdin.end(`${await by.joinString()}\n`)
    return await until(() => ended ?? undefined, patience.install, 'no output from the installer')
  } catch (error) {
    if (ended !== null) return ended
    throw signal.aborted ? signal.reason : error
  } finally {
    stop.abort()
  }
}

function lines(source: Readable, heard: (line: string) => void): void {
  let rest = ''
  source.setEncoding('utf8').on('data', (text: string) => {
    const all = (rest + text).split('\n')
    rest = all.pop() ?? ''
    for (const line of all) heard(line)
    if (rest.length <= longestLine) return
    heard(rest)
    rest = ''
  })
  source.on('end', () => {
    if (rest !== '') heard(rest)
  })
}
