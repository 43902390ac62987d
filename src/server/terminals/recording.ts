import { RsmError } from '../../core/errors.ts'
import type { Log } from '../../disk/log.ts'
import type { Recordings, RecordingWriter } from '../storage/ports/terminals.ts'
import type { TerminalRecord } from '../storage/records/terminal.ts'

/** Bytes. */
const largestRecording = 256 * 1024 * 1024
/** Fraction of the limit at which the user is warned. */
const nearlyFull = 0.9
const fullNotice = (continuesUnrecorded: boolean) =>
  `\r\n[rsm: the recording is full; the session ${continuesUnrecorded ? 'continued unrecorded' : 'ended'}]\r\n`

/** Marker of a full recording, as JSON: programs cannot print markers. No terminal output follows it. */
const fullMark: string = JSON.stringify('full')

interface RecordingEvents {
  written(): void
  /** It cannot be written any more; called once. */
  failed(error: unknown): void
  /** It nears or reaches its limit; each called once. */
  nearsBound(): void
  full(): void
}

export interface RecordingBound {
  /** Bytes [256 MiB]. */
  maxBytes?: number | undefined
  /** Whether a session continues beyond the limit, unrecorded. */
  continuesUnrecorded?: boolean | undefined
}

export interface RecordingOptions extends RecordingBound {
  events: RecordingEvents
}

interface Pending {
  line: readonly Uint8Array[]
  bytes: number
  sequence: number
}

const lineEnd = Buffer.from(']\n')

/** The asciicast v2 of one terminal, appended live: whole lines and at most one torn line. */
export class Recording {
  /** Sequence of the last stored output; output beyond the limit counts as stored. */
  written: number
  /** Stored bytes, of whole lines. */
  bytes: number
  #seconds: number
  #last: number
  #planned: number
  #isFull: boolean
  #isWarned = false
  #hasFailed = false
  #waiting: Pending[] = []
  #writing: Promise<void> | null = null
  readonly #options: RecordingOptions
  readonly #opened: Promise<RecordingWriter>

  private constructor(
    state: Recorded['state'],
    options: RecordingOptions,
    open: (failed: (error: unknown) => void) => Promise<RecordingWriter>,
  ) {
    this.bytes = state.bytes
    this.written = state.sequence
    this.#last = state.sequence
    this.#planned = state.bytes
    this.#seconds = state.seconds
    this.#isFull = state.isFull
    this.#options = options
    this.#opened = open((error) => this.#fail(error))
  }

  /** Creates a recording; resolves when its header is durable. */
  static async create(
    recordings: Pick<Recordings, 'create'>,
    id: string,
    header: object,
    options: RecordingOptions,
  ): Promise<Recording> {
    const line = Buffer.from(`${JSON.stringify(header)}\n`)
    const state = { bytes: line.length, seconds: 0, sequence: -1, isFull: false }
    const recording = new Recording(state, options, (failed) => recordings.create(id, line, failed))
    await recording.#opened
    return recording
  }

  /** Continues an earlier process's recording after its last whole event; `output` gets each output in it. */
  static async takeUp(
    recordings: Pick<Recordings, 'content' | 'reopen'>,
    id: string,
    options: RecordingOptions,
    output: (sequence: number, json: string) => void,
  ): Promise<{ recording: Recording; size: Recorded['size'] }> {
    const { state, size } = await readRecorded(recordings.content(id), output)
    const recording = new Recording(state, options, (failed) => recordings.reopen(id, state.bytes, failed))
    await recording.#opened
    return { recording, size }
  }

  /** `json` is one frame's JSON text in UTF-8; `seconds` counts from the terminal's start. */
  output(seconds: number, sequence: number, json: Uint8Array): void {
    // Sequences are implicit; a marker is needed only after a gap.
    if (sequence !== this.#last + 1)
      this.#event(seconds, 'm', Buffer.from(JSON.stringify(`sequence ${sequence}`)), this.#last)
    this.#last = sequence
    this.#event(seconds, 'o', json, sequence)
  }

  resize(seconds: number, cols: number, rows: number): void {
    this.#event(seconds, 'r', Buffer.from(JSON.stringify(`${cols}x${rows}`)), this.#last)
  }

  /** Whether the session must end, because further output would not be recorded. */
  get endsSession(): boolean {
    return this.#isFull && this.#options.continuesUnrecorded !== true
  }

  /** Flushes pending events and makes the recording durable. */
  async end(): Promise<void> {
    await this.#writing
    await (await this.#opened).end()
  }

  #event(seconds: number, code: 'o' | 'r' | 'm', json: Uint8Array, sequence: number): void {
    if (this.#hasFailed) return
    // Time in a recording never goes back, whatever the clock did over a restart.
    this.#seconds = Math.max(this.#seconds, seconds)
    if (this.#isFull) {
      this.written = sequence
      return
    }
    const pending = this.#lineOf(code, json, sequence)
    this.#planned += pending.bytes
    const { maxBytes = largestRecording, continuesUnrecorded = false, events } = this.#options
    this.#isFull = this.#planned > maxBytes
    if (this.#isFull)
      this.#waiting.push(
        this.#lineOf('m', Buffer.from(fullMark), sequence),
        this.#lineOf('o', Buffer.from(JSON.stringify(fullNotice(continuesUnrecorded))), sequence),
      )
    else this.#waiting.push(pending)
    this.#writing ??= this.#writeAll()
    if (this.#isFull) return events.full()
    if (this.#isWarned || this.#planned <= nearlyFull * maxBytes) return
    this.#isWarned = true
    events.nearsBound()
  }

  #lineOf(code: 'o' | 'r' | 'm', json: Uint8Array, sequence: number): Pending {
    const begin = Buffer.from(`[${this.#seconds.toFixed(6)}, "${code}", `)
    return {
      line: [begin, json, lineEnd],
      bytes: begin.length + json.length + lineEnd.length,
      sequence,
    }
  }

  async #writeAll(): Promise<void> {
    const writer = await this.#opened
    while (this.#waiting.length > 0 && !this.#hasFailed) {
      const batch = this.#waiting
      this.#waiting = []
      try {
        await writer.append(batch.flatMap(({ line }) => line))
      } catch (error) {
        this.#fail(error)
        break
      }
      this.bytes += batch.reduce((sum, { bytes }) => sum + bytes, 0)
      this.written = Math.max(this.written, batch.at(-1)?.sequence ?? -1)
      this.#options.events.written()
    }
    this.#writing = null
  }

  #fail(error: unknown): void {
    if (this.#hasFailed) return
    this.#hasFailed = true
    this.#waiting = []
    this.#options.events.failed(error)
  }
}

/** Starts the recording of a terminal. Errors: `unavailable` if it cannot be written. */
export async function beginRecording(
  recordings: Recordings,
  record: TerminalRecord,
  options: RecordingOptions,
  log: Log,
): Promise<Recording> {
  const { id, user, hostname, cols, rows, startedAt, term, shell } = record
  const header = {
    version: 2,
    width: cols,
    height: rows,
    timestamp: Math.floor(Date.parse(startedAt) / 1000),
    title: `${user}@${hostname}`,
    env: { TERM: term ?? 'xterm-256color', ...(shell === null ? {} : { SHELL: shell }) },
  }
  try {
    return await Recording.create(recordings, id, header, options)
  } catch (cause) {
    log.error({ err: cause, sessionId: id }, 'a recording could not be started')
    throw new RsmError(
      'unavailable',
      'The recording of the session cannot be written, and unrecorded sessions are not allowed',
      { cause, retryAfter: 30 },
    )
  }
}

interface Recorded {
  /** Where to continue: bytes of whole lines, seconds of the last event, sequence of the last output. */
  state: { bytes: number; seconds: number; sequence: number; isFull: boolean }
  /** Last recorded size, or null. */
  size: { cols: number; rows: number } | null
}

const eventLine = /^\[(?<seconds>\d+\.\d+), "(?<code>[orm])", (?<json>".*")\]$/
const sizeText = /^"(\d+)x(\d+)"$/
const sequenceText = /^"sequence (\d+)"$/
const newline = 10

/** Reads a possibly torn recording; passes each output to `output`. The first line is the header. */
export async function readRecorded(
  content: AsyncIterable<Buffer>,
  output: (sequence: number, json: string) => void,
): Promise<Recorded> {
  const state = { bytes: 0, seconds: 0, sequence: -1, isFull: false }
  let size: Recorded['size'] = null
  for await (const { line, end } of linesOf(content)) {
    const isHeader = line.length + 1 === end
    const event = eventLine.exec(line.toString('utf8'))?.groups
    if (!isHeader && !event) continue
    state.bytes = end
    if (!event) continue
    const { seconds, code, json = '' } = event
    state.seconds = Number(seconds)
    const resized = code === 'r' ? sizeText.exec(json) : null
    if (resized) size = { cols: Number(resized[1]), rows: Number(resized[2]) }
    const missing = code === 'm' ? sequenceText.exec(json) : null
    if (missing) state.sequence = Number(missing[1]) - 1
    if (code === 'm' && json === fullMark) state.isFull = true
    if (code === 'o' && !state.isFull) output(++state.sequence, json)
  }
  return { state, size }
}

/** Yields lines that end with a newline, and the offset after each. */
async function* linesOf(content: AsyncIterable<Buffer>): AsyncGenerator<{ line: Buffer; end: number }> {
  let rest: Buffer = Buffer.alloc(0)
  let offset = 0
  for await (const chunk of content) {
    const bytes = Buffer.concat([rest, chunk])
    let from = 0
    for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, from)) {
      yield { line: bytes.subarray(from, end), end: offset + end + 1 }
      from = end + 1
    }
    rest = bytes.subarray(from)
    offset += from
  }
}
