import { randomInt } from 'node:crypto'
import type pg from 'pg'
import { Mutex } from '../../../../core/mutex.ts'
import type { Keys } from '../../ports/keys.ts'
import type { Database } from '../connection/database.ts'
import { FrameOpener, FrameSealer, frameBytes } from './sealed-frames.ts'

/** Frames of one statement. */
const framesAtOnce = 64
/** Milliseconds between signs of life that a wire sends itself: one that hears nothing is told by nobody. */
const echoEvery = 2_000
/** So many unanswered: the connection is dead. */
const mostUnanswered = 3

const channelOf = (wire: number) => `rsm_relay_${wire}`
const notifyStatement = {
  name: 'relay_notify',
  text: 'select pg_notify(channel, frame) from unnest($1::text[], $2::text[]) as frames(channel, frame)',
}

export interface WireEvents {
  /** Bytes of another wire, in order and without a gap. */
  received(from: number, bytes: Buffer): void
  /** The connection is gone, or what comes over it is not whole: all that was on its way is gone with it. */
  lost(error: Error): void
}

/** Bytes that wait for one other wire. */
interface Outgoing {
  readonly sealer: FrameSealer
  isOpened: boolean
  readonly pieces: { bytes: Buffer; taken: () => void }[]
}

/**
 * Bytes between servers by NOTIFY, over one connection of its own. A wire lives as long as its connection; what follows has
 * another number. It holds an advisory lock of that number, by which the others see that it lives.
 */
export class Wire {
  readonly id: number
  readonly #client: pg.Client
  readonly #keys: Keys
  readonly #events: WireEvents
  readonly #outgoing = new Map<number, Outgoing>()
  /** Null: broken for good. */
  readonly #incoming = new Map<number, FrameOpener | null>()
  #sending: Promise<void> | null = null
  readonly #statements = new Mutex()
  #isLost = false
  #unanswered = 0
  readonly #echo: NodeJS.Timeout

  private constructor(id: number, client: pg.Client, keys: Keys, events: WireEvents) {
    this.id = id
    this.#client = client
    this.#keys = keys
    this.#events = events
    client.on('notification', ({ payload = '' }) => this.#heard(payload))
    client.on('error', (error) => this.#lose(error))
    client.on('end', () => this.#lose(new Error('the connection has ended')))
    this.#echo = setInterval(() => this.#sendEcho(), echoEvery).unref()
  }

  static async open(database: Database, keys: Keys, events: WireEvents): Promise<Wire> {
    const client = await database.connect()
    const id = randomInt(1, 2 ** 48 - 1)
    const wire = new Wire(id, client, keys, events)
    try {
      // Nobody waits for the disk: what is told lasts nowhere.
      await wire.ask('set synchronous_commit = off')
      await wire.ask('select pg_advisory_lock($1)', [id])
      await wire.ask(`listen ${channelOf(id)}`)
      return wire
    } catch (error) {
      await wire.close()
      throw error
    }
  }

  get isOpen(): boolean {
    return !this.#isLost
  }

  /** A statement over its connection. */
  ask<R extends object>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    return this.#query<R>({ text, values: [...values] })
  }

  /** `taken` is called when PostgreSQL has it; never, when the wire is lost before. */
  send(to: number, bytes: Buffer, taken: () => void = () => undefined): void {
    if (this.#isLost) return
    let outgoing = this.#outgoing.get(to)
    if (!outgoing) {
      outgoing = { sealer: new FrameSealer(this.#keys, this.id, to), isOpened: false, pieces: [] }
      this.#outgoing.set(to, outgoing)
    }
    outgoing.pieces.push({ bytes, taken })
    this.#sending ??= new Promise<void>((resolve) => {
      // What is sent in the same turn goes along.
      setImmediate(() => resolve(this.#sendAll()))
    })
  }

  /** Nothing more goes to this one, or is heard of it. */
  forget(peer: number): void {
    this.#outgoing.delete(peer)
    this.#incoming.set(peer, null)
  }

  /** Sends what waits, and ends it. */
  async close(): Promise<void> {
    await this.#sending
    clearInterval(this.#echo)
    this.#isLost = true
    await this.#client.end()
  }

  async #sendAll(): Promise<void> {
    try {
      for (let next = this.#nextFrames(); next.frames.length > 0; next = this.#nextFrames()) {
        await this.#notify(next.channels, next.frames)
        for (const taken of next.taken) taken()
      }
    } catch (error) {
      this.#lose(error as Error)
    } finally {
      this.#sending = null
    }
  }

  async #notify(channels: string[], frames: string[]): Promise<void> {
    await this.#query({ ...notifyStatement, values: [channels, frames] })
  }

  /** The connection takes one statement after the other. */
  async #query<R extends object>(query: pg.QueryConfig): Promise<R[]> {
    const { rows } = await this.#statements.run(() => this.#client.query<R>(query))
    return rows
  }

  /** A turn for each wire that something waits for. */
  #nextFrames(): { channels: string[]; frames: string[]; taken: (() => void)[] } {
    const next = { channels: [] as string[], frames: [] as string[], taken: [] as (() => void)[] }
    const waiting = [...this.#outgoing].filter(([, { pieces }]) => pieces.length > 0)
    const share = Math.max(1, Math.floor(framesAtOnce / Math.max(1, waiting.length)))
    for (const [to, outgoing] of waiting.slice(0, framesAtOnce)) {
      if (!outgoing.isOpened) {
        next.channels.push(channelOf(to))
        next.frames.push(`${this.id} key ${outgoing.sealer.opening}`)
        outgoing.isOpened = true
      }
      for (let count = 0; count < share && outgoing.pieces.length > 0; count++) {
        next.channels.push(channelOf(to))
        next.frames.push(`${this.id} ${outgoing.sealer.seal(takeFrame(outgoing.pieces, next.taken))}`)
      }
    }
    return next
  }

  #heard(payload: string): void {
    const [sender = '', first = '', second] = payload.split(' ')
    const from = Number(sender)
    if (from === this.id) {
      this.#unanswered = 0
      return
    }
    if (!Number.isSafeInteger(from)) return
    try {
      if (first === 'key') this.#agree(from, second ?? '')
      else this.#open(from, first)
    } catch {
      // Of somebody who has no key of this store, and whom nobody needs to hear.
    }
  }

  #agree(from: number, opening: string): void {
    if (this.#incoming.has(from)) return
    this.#incoming.set(from, new FrameOpener(this.#keys, from, this.id, opening))
  }

  #open(from: number, frame: string): void {
    const opener = this.#incoming.get(from)
    if (!opener) return
    let bytes: Buffer | null
    try {
      bytes = opener.open(frame)
    } catch (error) {
      // Keys are agreed on once for each two wires: the next wire begins anew with all of them.
      return this.#lose(error as Error)
    }
    if (bytes) this.#events.received(from, bytes)
  }

  #sendEcho(): void {
    if (++this.#unanswered > mostUnanswered) return this.#lose(new Error('PostgreSQL does not answer'))
    this.#notify([channelOf(this.id)], [String(this.id)]).catch((error: Error) => this.#lose(error))
  }

  #lose(why: Error): void {
    if (this.#isLost) return
    this.#isLost = true
    clearInterval(this.#echo)
    this.#outgoing.clear()
    void this.#client.end()
    this.#events.lost(why)
  }
}

/** The bytes of the next frame, out of as many pieces as it holds. */
function takeFrame(pieces: { bytes: Buffer; taken: () => void }[], taken: (() => void)[]): Buffer {
  const parts: Buffer[] = []
  let room = frameBytes
  for (let piece = pieces[0]; piece && room > 0; piece = pieces[0]) {
    const part = piece.bytes.subarray(0, room)
    parts.push(part)
    room -= part.length
    piece.bytes = piece.bytes.subarray(part.length)
    if (piece.bytes.length > 0) break
    taken.push(piece.taken)
    pieces.shift()
  }
  return Buffer.concat(parts)
}
