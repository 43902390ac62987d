import { isSameCount, missingInput, type TypedCount } from '../core/terminals/terminal.ts'
import { pieces } from '../core/text/pieces.ts'

/** Characters of one TERMINAL_INPUT: far below the largest frame in any encoding. */
const frameChars = 32 * 1024
/** Bytes in flight above which input must wait. */
const fullAt = 256 * 1024
/** Characters kept for resending, and limit of characters not yet sent. */
const mostKept = 1024 * 1024
/** Milliseconds without input that separate a key press from the rest of a paste. */
const pauseBeforeKey = 500
/** Ctrl-C and Ctrl-\: not dropped with the rest of a paste, because they end what it has started. */
const interrupts: ReadonlySet<string> = new Set(['\x03', '\x1c'])

/** `full`: accepted, but wait for `drained`; `refused`: no room; `dropped`: follows missing input. */
export type Taken = 'taken' | 'full' | 'refused' | 'dropped'

export interface InputSink {
  readonly bufferedAmount: number
  /** `place` is undefined for a server that does not count input. */
  send(data: string, place: { by: string; position: number } | undefined, sent: () => void): void
}

export interface PendingInputOptions {
  readonly drained: () => void
  /** Input is missing; `sentence` is for people. */
  readonly lost: (sentence: string) => void
  /** Monotonic milliseconds. */
  readonly now?: () => number
}

const newName = () =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-')

/**
 * Ordered input from the client to the session (contract §7). Keeps sent input up to a limit, and resends it
 * from the host's count. If that is impossible, drops everything after the gap up to the next key press.
 */
export class PendingInput {
  readonly #options: PendingInputOptions
  #sink: InputSink | undefined
  /** Identifies a run of input without gaps. */
  #name = newName()
  /** Kept input, from position `#from`. */
  #text = ''
  #from = 0
  #sent = 0
  /** The host's count when this run began; undefined for a server that does not count. */
  #before: TypedCount | undefined
  #isDropping = false
  #dropped = 0
  #typedAt = Number.NEGATIVE_INFINITY
  #isFull = false

  constructor(options: PendingInputOptions) {
    this.#options = options
  }

  push(data: string): Taken {
    const now = (this.#options.now ?? performance.now.bind(performance))()
    const isKey = now - this.#typedAt >= pauseBeforeKey
    this.#typedAt = now
    const sink = this.#sink
    if (sink === undefined) {
      // A gap is reported with the next connection: until then no input may follow it.
      this.#isDropping ||= this.#end - this.#sent + data.length > mostKept
      if (this.#isDropping) return this.#drop(data, 'refused')
      this.#text += data
      return 'taken'
    }
    if (isKey) this.#endDropping()
    else if (this.#isDropping && !interrupts.has(data)) return this.#drop(data, 'dropped')
    this.#text += data
    this.#send(sink, data)
    this.#isFull = sink.bufferedAmount >= fullAt
    return this.#isFull ? 'full' : 'taken'
  }

  /** `typed`: the host's count; undefined for a server that does not count. */
  attach(sink: InputSink, typed?: TypedCount): void {
    const at = this.#continuesAt(typed)
    this.#sink = sink
    if (at === null || at < this.#from) this.#lose(typed, at)
    else {
      if (at === 0) this.#before = typed
      this.#sent = at
      this.#send(sink, this.#text.slice(at - this.#from))
    }
    // Input refused while disconnected.
    if (this.#dropped > 0) this.#report(this.#dropped, true)
  }

  detach(): void {
    this.#sink = undefined
    this.#room()
  }

  get #end(): number {
    return this.#from + this.#text.length
  }

  /** Position from which the host misses input; null if unknown. */
  #continuesAt(typed: TypedCount | undefined): number | null {
    const before = this.#before
    const isAsBefore = typed !== undefined && before !== undefined && isSameCount(typed, before)
    if (this.#sent === 0) {
      const hasAnotherTyped = before !== undefined && typed?.by != null && !isAsBefore
      return hasAnotherTyped && this.#text !== '' ? null : 0
    }
    if (typed?.by === this.#name) return typed.count <= this.#sent ? typed.count : null
    return isAsBefore ? 0 : null
  }

  /** Starts a new run, because input after a gap must not be typed without its user. */
  #lose(typed: TypedCount | undefined, at: number | null): void {
    const missing = this.#end - (at ?? this.#sent) + this.#dropped
    this.#name = newName()
    this.#text = ''
    this.#from = 0
    this.#sent = 0
    this.#before = typed
    this.#isDropping = true
    this.#report(missing, at !== null)
  }

  #drop(data: string, taken: 'refused' | 'dropped'): Taken {
    this.#dropped += data.length
    return taken
  }

  #endDropping(): void {
    this.#isDropping = false
    if (this.#dropped > 0) this.#report(this.#dropped, true)
  }

  #report(characters: number, isAll: boolean): void {
    this.#dropped = 0
    this.#options.lost(missingInput(characters, isAll))
  }

  #send(sink: InputSink, data: string): void {
    const isCounted = this.#before !== undefined
    for (const piece of pieces(data, frameChars)) {
      const place = isCounted ? { by: this.#name, position: this.#sent } : undefined
      this.#sent += piece.length
      sink.send(piece, place, () => {
        if (sink === this.#sink && sink.bufferedAmount <= fullAt / 2) this.#room()
      })
    }
    // Trim rarely, because it copies the whole text.
    if (this.#text.length < 2 * mostKept) return
    this.#text = this.#text.slice(-mostKept)
    this.#from = this.#sent - this.#text.length
  }

  #room(): void {
    if (!this.#isFull) return
    this.#isFull = false
    this.#options.drained()
  }
}

/** Output is acknowledged after this many characters, or milliseconds. */
const ackEvery = 64 * 1024
const ackWithin = 50

/** Tells the server which output was shown: often enough that it keeps sending, and no more often. */
export class Acknowledgement {
  /** Null while there is no connection. */
  #send: ((sequence: number) => void) | null = null
  #displayed = -1
  #acknowledged = -1
  #pending = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  attach(send: (sequence: number) => void): void {
    this.#send = send
    // An acknowledgement sent over a lost connection may not have arrived.
    this.#acknowledged = -1
    this.#acknowledge()
  }

  detach(): void {
    this.#send = null
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  displayed(sequence: number, characters: number): void {
    this.#displayed = sequence
    this.#pending += characters
    if (this.#pending >= ackEvery) this.#acknowledge()
    else if (this.#send !== null) this.#timer ??= setTimeout(() => this.#acknowledge(), ackWithin)
  }

  #acknowledge(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#send === null || this.#displayed === this.#acknowledged) return
    this.#acknowledged = this.#displayed
    this.#pending = 0
    this.#send(this.#displayed)
  }
}
