import { isSameCount, missingInput, type TypedCount } from '../core/terminals/terminal.ts'
import { pieces } from '../core/text/pieces.ts'

/** Characters of one TERMINAL_INPUT: far below the largest frame, however they are encoded. */
const frameChars = 32 * 1024
/** Bytes on their way to the server above which more is to wait. */
const fullAt = 256 * 1024
/** Characters that are kept to be sent again, and as many that were not sent yet. */
const mostKept = 1024 * 1024
/** Milliseconds without input that separate a key from the rest of a paste. */
const pauseBeforeKey = 500
/** Ctrl-C and Ctrl-\: they end what a part of a paste has begun, however fast they are pressed. */
const interrupts: ReadonlySet<string> = new Set(['\x03', '\x1c'])

/** `full`: taken, but nothing more until there is room; `refused`: no room; `dropped`: it follows input that is missing. */
export type Taken = 'taken' | 'full' | 'refused' | 'dropped'

/** Where input goes while there is a connection. */
export interface InputSink {
  readonly bufferedAmount: number
  /** `place` is undefined for a server that does not count. */
  send(data: string, place: { by: string; position: number } | undefined, sent: () => void): void
}

export interface PendingInputOptions {
  /** There is room again. */
  readonly drained: () => void
  /** Input is missing, with a sentence for people. */
  readonly lost: (sentence: string) => void
  /** Monotonic milliseconds. */
  readonly now?: () => number
}

const newName = () =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-')

/**
 * Input in order, from the client to the session (contract §7). What was sent is kept up to a bound, and goes again from
 * where the host has counted; where that is not possible, what follows the gap is dropped up to the next key.
 */
export class PendingInput {
  readonly #options: PendingInputOptions
  #sink: InputSink | undefined
  /** Names one row of input without a gap. */
  #name = newName()
  /** From the position `#from` on. */
  #text = ''
  #from = 0
  /** Up to here it was sent. */
  #sent = 0
  /** Of the host, when this row began; undefined for a server that does not count. */
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
      // A gap here is told with the next connection: until then nothing may follow it.
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

  /** `typed`: what the host has counted; undefined for a server that does not count. */
  attach(sink: InputSink, typed?: TypedCount): void {
    const at = this.#continuesAt(typed)
    this.#sink = sink
    if (at === null || at < this.#from) this.#lose(typed, at)
    else {
      if (at === 0) this.#before = typed
      this.#sent = at
      this.#send(sink, this.#text.slice(at - this.#from))
    }
    // Input that found no room while there was no connection.
    if (this.#dropped > 0) this.#report(this.#dropped, true)
  }

  detach(): void {
    this.#sink = undefined
    this.#room()
  }

  get #end(): number {
    return this.#from + this.#text.length
  }

  /** The position from which the host misses input; null if that is unknown. */
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

  /** Begins a new row, as what follows a gap must not be typed without its user. */
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
    // Not with each key: it copies all of it.
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
