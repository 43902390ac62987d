import { randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { StringDecoder } from 'node:string_decoder'
import type { ClientChannel } from 'ssh2'
import {
  type Installed,
  type Remote,
  readFailure,
  readInstalled,
  remoteLine,
  type SaidFailure,
} from '../../../core/join/remote-install.ts'
import type { Stream } from '../../../core/tasks/task.ts'
import { printable } from '../../../core/text/printable.ts'
import { type Connection, InstallFault } from './connection.ts'

/** Takes what a host prints, as text. */
export type Say = (stream: Stream, text: string) => void

/** Characters: of a line that are looked at, and of all that is said; an installer of ours says some hundred. */
const longestLine = 64 * 1024
const longestError = 1000
const mostSaid = 1024 * 1024
/** Counted for each line beside its characters: it is stored as an entry of its own. */
const perLine = 64
/** Milliseconds that a host may take. */
export interface Patience {
  /** To let us in, and then to begin with what we ask for. */
  readonly first: number
  /** To look what it is, and what it has. */
  readonly look: number
  /** To take the next piece of a copy. */
  readonly piece: number
  /** To put the copy in its place; to install, of which `rsm agent install` waits 60 s for the link and 90 s for systemd. */
  readonly step: number
}

export const usualPatience: Patience = { first: 30_000, look: 60_000, piece: 60_000, step: 200_000 }

/** What the installer says to us. */
const markedWords = new Set(['shell', 'host', 'ready', 'result'])

export interface ConversationOptions {
  readonly sudo: Remote['sudo']
  readonly sudoPassword: string | null
  /** `packaging/install.sh`. */
  readonly script: string
  readonly say: Say
  readonly patience: Patience
  readonly signal: AbortSignal
}

/** How what ran there has ended. */
export interface Ended {
  readonly exitCode: number | null
  /** What it said of itself last. */
  readonly words: string | null
  /** What `rsm agent install` says that it has done; null where it does not. */
  readonly installed: Installed | null
}

/** The installer on a host, which is spoken to over one channel (`install.sh --over-ssh`): it says marked lines, and is told what to do. */
export class Conversation {
  readonly #channel: ClientChannel
  readonly #mark: string
  readonly #options: ConversationOptions
  readonly #marked = new Map<string, string[]>()
  /** What was printed behind the line `result`. */
  #result = ''
  #wake: () => void = () => undefined
  #ended: { exitCode: number | null } | null = null
  #lastError: string | null = null
  #isOwnError = false
  #said = 0
  #refusal: InstallFault | null = null

  private constructor(channel: ClientChannel, mark: string, options: ConversationOptions) {
    this.#channel = channel
    this.#mark = mark
    this.#options = options
    // Whoever ends early does not read all of it; how it ended says more.
    channel.on('error', () => undefined)
    lines(channel, (line) => this.#heard('stdout', line))
    lines(channel.stderr, (line) => this.#heard('stderr', line))
    // Not by 'exit', which may come before this listens.
    channel.on('close', (code?: number | null) => {
      this.#ended = { exitCode: code ?? null }
      this.#wake()
    })
    options.signal.addEventListener('abort', () => this.#wake(), { once: true })
  }

  /** Until the installer runs there as whoever may install. */
  static async begin(connection: Connection, options: ConversationOptions): Promise<Conversation> {
    const { sudo, sudoPassword, script } = options
    const mark = randomBytes(12).toString('hex')
    const words = ['rsm', 'agent', 'install', '-', '--yes', '--json']
    const scriptSize = Buffer.byteLength(script)
    const line = remoteLine({ sudo, mark, scriptSize, words })
    const channel = await connection.run(line, options.patience.first)
    const talk = new Conversation(channel, mark, options)
    if (sudoPassword !== null && sudo === 'password') channel.write(`${sudoPassword}\n`)
    await talk.heard('shell', options.patience.first)
    channel.write(`${mark}\n${script}`)
    return talk
  }

  /** The words behind a marked line, once it was said. Errors: InstallFault where the installer ends before, or is silent. */
  async heard(word: string, within: number): Promise<string[]> {
    const late = this.#lateness(within)
    for (;;) {
      const words = this.#marked.get(word)
      if (words !== undefined) return words
      await this.#progress(late, within)
    }
  }

  tell(line: string): void {
    this.#channel.write(`${line}\n`)
  }

  /** The last that it is told. */
  tellLast(line: string): void {
    this.#channel.end(`${line}\n`)
  }

  async send(path: string): Promise<void> {
    const { piece } = this.#options.patience
    const [closed, stalled] = [new AbortController(), new AbortController()]
    const stop = () => closed.abort()
    this.#channel.once('close', stop)
    const timer = setTimeout(() => stalled.abort(), piece)
    const source = createReadStream(path).on('data', () => timer.refresh())
    try {
      const signal = AbortSignal.any([closed.signal, stalled.signal, this.#options.signal])
      await pipeline(source, this.#channel, { end: false, signal })
    } catch (error) {
      if (stalled.signal.aborted)
        throw new InstallFault(`the host took nothing of the copy for ${seconds(piece)}`)
      if (!closed.signal.aborted) throw error
      throw this.#refusal ?? this.#fault()
    } finally {
      clearTimeout(timer)
      this.#channel.off('close', stop)
    }
  }

  async over(within: number): Promise<Ended> {
    const late = this.#lateness(within)
    while (this.#ended === null) await this.#progress(late, within)
    if (this.#refusal !== null) throw this.#refusal
    const { exitCode } = this.#ended
    return { exitCode, words: this.#lastError, installed: readInstalled(this.#result) }
  }

  /** Aborts, and wakes who waits, after so long without the step that is waited for. */
  #lateness(within: number): AbortSignal {
    const late = AbortSignal.timeout(within)
    late.addEventListener('abort', () => this.#wake(), { once: true })
    return late
  }

  async #progress(late: AbortSignal, within: number): Promise<void> {
    if (this.#refusal !== null) throw this.#refusal
    if (this.#ended !== null) throw this.#fault()
    this.#options.signal.throwIfAborted()
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    // In one turn with the look: nothing is missed.
    await woken
    this.#options.signal.throwIfAborted()
    if (late.aborted) throw new InstallFault(`nothing came from the installer for ${seconds(within)}`)
  }

  #fault(): InstallFault {
    const exitCode = this.#ended?.exitCode ?? null
    const why = this.#lastError ?? `it ended with ${exitCode ?? 'no exit code'} and said nothing`
    return new InstallFault(why, exitCode === null || exitCode === 0 ? 1 : exitCode)
  }

  #heard(stream: Stream, line: string): void {
    if (this.#refusal !== null) return
    this.#said += line.length + perLine
    if (this.#said > mostSaid)
      return this.#refuse(new InstallFault('the host says more than an installer does', 1))
    const [mark, word, ...words] = line.split(' ')
    if (stream === 'stdout' && mark === this.#mark && word !== undefined) {
      const said = word.trim()
      const rest = words.map((each) => each.trim())
      if (markedWords.has(said)) this.#marked.set(said, rest)
      return this.#wake()
    }
    if (stream === 'stdout' && this.#marked.has('result')) {
      this.#result += `${line}\n`
      return
    }
    const failure = stream === 'stderr' ? readFailure(line) : null
    if (failure !== null) return this.#failed(failure)
    this.#options.say(stream, `${line}\n`)
    if (stream !== 'stderr' || line.trim() === '') return
    // What follows an error of rsm is advice, and stands in the output.
    const isOwn = line.startsWith('rsm: ')
    if (isOwn || !this.#isOwnError) this.#lastError = short(line.trim().replace(/^rsm: /, ''))
    this.#isOwnError ||= isOwn
    // It would ask again, and some systems lock who tries too often.
    const refusal = sudoFault(line, this.#options)
    if (refusal !== null) this.#refuse(refusal)
  }

  /** As `rsm` itself would print it. */
  #failed({ message, hint }: SaidFailure): void {
    const steps = hint === null ? [] : hint.split('\n').map((step) => `     ${step}`)
    this.#options.say('stderr', `${[`rsm: ${message}`, ...steps].join('\n')}\n`)
    this.#lastError = short(message)
    this.#isOwnError = true
  }

  /** Ends it for a reason of ours; what comes on the way is not heard any more. */
  #refuse(why: InstallFault): void {
    this.#refusal ??= why
    this.#channel.close()
    this.#wake()
  }
}

const seconds = (milliseconds: number) => `${milliseconds / 1000} s`

const short = (text: string) => printable(text).slice(0, longestError)

/** What sudo says when it does not do it; its words are those of LC_ALL=C. */
function sudoFault(line: string, { sudo }: ConversationOptions): InstallFault | null {
  if (sudo === 'none') return null
  if (/^Sorry, try again|incorrect password/.test(line))
    return new InstallFault('sudo does not take the stored password', 1)
  if (/^sudo: .*password is required/.test(line))
    return new InstallFault(
      'sudo asks for a password, and none is stored: rsm hosts edit HOST --private-key FILE --password-stdin',
      1,
    )
  return null
}

function lines(source: NodeJS.ReadableStream, line: (text: string) => void): void {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  source.on('data', (chunk: Buffer) => {
    rest += decoder.write(chunk)
    const all = rest.split('\n')
    rest = all.pop() ?? ''
    for (const one of all) line(one)
    if (rest.length <= longestLine) return
    line(rest)
    rest = ''
  })
  source.on('end', () => {
    if (rest !== '') line(rest)
    rest = ''
  })
}
