import { httpStatus, RsmError } from '../../../core/errors.ts'
import { closeCodes } from '../../../core/protocol/close-codes.ts'
import type { TerminalSite } from '../../storage/ports/cluster.ts'
import type { Attachment, TerminalClient } from '../../storage/ports/terminals.ts'
import type { Channel, ChannelEvents, Message, OpenChannel } from './channel.ts'

/** Bytes in flight to the server of a session above which its client is paused … */
const high = 64 * 1024
/** … and below which it is resumed. */
const low = 16 * 1024
/** Cost of a message beside its content, because single characters pile up too. */
const overhead = 200
/** Milliseconds over which `written` reports are batched. */
const writtenDelay = 10
/** Bytes in flight to one client before it is closed; beyond the 256 KiB that a terminal sends ahead. */
const maxInFlight = 4 * 1024 * 1024
/** Milliseconds to wait for `parted`, the report that both sides closed the client's socket in order. */
const partsWithin = 5_000

export interface Attach extends Pick<TerminalClient, 'caller' | 'ip' | 'acknowledges'> {
  readonly sessionId: string
  readonly after: number | null
  readonly watch: boolean
}

/** A client of this server that is attached to a terminal of another. */
export class NearClient implements ChannelEvents {
  readonly #client: TerminalClient
  readonly #channel: Channel
  /** False for a client that acknowledges output: its acknowledgements suffice. */
  readonly #reportsWritten: boolean
  /** Reasons the client is paused. */
  readonly #pauses = new Set<'way' | 'site'>()
  #inFlight = 0
  #isGone = false
  #written = -1
  #timer: NodeJS.Timeout | undefined

  constructor(client: TerminalClient, watch: boolean, open: OpenChannel) {
    this.#client = client
    this.#reportsWritten = watch || !client.acknowledges
    this.#channel = open(this)
  }

  get attachment(): Attachment {
    const channel = this.#channel
    const send = (size: number, ...message: Message) => {
      const bytes = size + overhead
      this.#count(bytes)
      channel.send(message, () => this.#count(-bytes))
    }
    return {
      input: (data, frameId, place) =>
        send(data.length + frameId.length, 'input', data, frameId, ...(place ? [place] : [])),
      resize: (cols, rows) => send(0, 'resize', cols, rows),
      acknowledge: (sequence) => send(0, 'acknowledge', sequence),
      leave: () => channel.send(['leave']),
      gone: () => {
        clearTimeout(this.#timer)
        this.#isGone = true
        channel.send(['gone'])
      },
      parted: () => channel.send(['parted']),
    }
  }

  received([method, ...args]: Message): void {
    if (method === 'pause' || method === 'resume') return this.#setPaused('site', method === 'pause')
    if (method === 'output') return this.#output(...(args as [number, Buffer]))
    const called = (['notify', 'send', 'close'] as const).find((one) => one === method)
    if (called) (this.#client[called] as (...given: unknown[]) => void)(...args)
  }

  /** Closes the client, which reconnects with `after`. */
  closed(): void {
    if (!this.#isGone)
      this.#client.close(closeCodes.shuttingDown, 'the connection to the server of the session was lost')
  }

  #output(sequence: number, json: Buffer): void {
    this.#client.output(sequence, json, () => {
      this.#written = sequence
      if (!this.#reportsWritten || this.#isGone || this.#timer) return
      this.#timer = setTimeout(() => {
        this.#timer = undefined
        this.#channel.send(['written', this.#written])
      }, writtenDelay)
    })
  }

  #count(bytes: number): void {
    this.#inFlight += bytes
    this.#setPaused('way', this.#inFlight > (this.#pauses.has('way') ? low : high))
  }

  #setPaused(why: 'way' | 'site', isPaused: boolean): void {
    const was = this.#pauses.size > 0
    if (isPaused) this.#pauses.add(why)
    else this.#pauses.delete(why)
    const is = this.#pauses.size > 0
    if (is && !was) this.#client.pause()
    else if (was && !is) this.#client.resume()
  }
}

/** A client of another server, as a terminal of this one sees it. */
export class FarClient implements TerminalClient, ChannelEvents {
  readonly caller: TerminalClient['caller']
  readonly ip: string | null
  readonly acknowledges: boolean
  readonly #channel: Channel
  /** Outputs that the client's socket has not yet taken, as far as is known. */
  #unwritten: { sequence: number; written: () => void }[] = []
  #attachment: Attachment | null = null
  #isClosed = false
  #leaving: NodeJS.Timeout | undefined

  constructor({ caller, ip, acknowledges }: Attach, open: OpenChannel) {
    this.caller = caller
    this.ip = ip
    this.acknowledges = acknowledges
    this.#channel = open(this)
  }

  /** Refusals reach the client as those of a local terminal do. */
  attach(site: TerminalSite, { sessionId, after, watch }: Attach): void {
    try {
      this.#attachment = site.attach(sessionId, this, { after, watch })
    } catch (error) {
      const message = error instanceof RsmError ? error.message : 'the session cannot be attached'
      this.send('ERROR', { code: httpStatus(error), message, refId: null })
      this.close(closeCodes.overloaded, 'the session cannot be attached')
    }
  }

  output(sequence: number, json: Uint8Array, written: () => void): void {
    if (!this.#mayTake()) return
    this.#unwritten.push({ sequence, written })
    this.#channel.output(sequence, json)
  }

  notify: TerminalClient['notify'] = (notice) => this.#pass('notify', notice)
  send: TerminalClient['send'] = (type, payload) => this.#pass('send', type, payload)
  pause = (): void => this.#pass('pause')
  resume = (): void => this.#pass('resume')

  close(code: number, reason: string): void {
    this.#pass('close', code, reason)
    this.#isClosed = true
  }

  received([method, ...args]: Message): void {
    if (method === 'written' || method === 'acknowledge') this.#took(args[0] as number)
    if (method === 'gone') return this.#gone()
    if (method === 'parted') this.#channel.close()
    const called = (['input', 'resize', 'acknowledge', 'leave', 'parted'] as const).find(
      (one) => one === method,
    )
    if (called) (this.#attachment?.[called] as ((...given: unknown[]) => void) | undefined)?.(...args)
  }

  closed(): void {
    if (this.#leaving === undefined) this.#attachment?.gone()
    clearTimeout(this.#leaving)
  }

  #gone(): void {
    this.#leaving ??= setTimeout(() => this.#channel.close(), partsWithin).unref()
    this.#attachment?.gone()
  }

  /** The client's socket has taken output up to here; acknowledged output was written before. */
  #took(sequence: number): void {
    const next = this.#unwritten.findIndex((output) => output.sequence > sequence)
    const taken = this.#unwritten.splice(0, next < 0 ? this.#unwritten.length : next)
    for (const { written } of taken) written()
  }

  #pass(...message: Message): void {
    if (this.#mayTake()) this.#channel.send(message)
  }

  #mayTake(): boolean {
    if (this.#isClosed) return false
    if (this.#channel.buffered <= maxInFlight) return true
    this.#isClosed = true
    this.#channel.send(['close', closeCodes.overloaded, 'the client does not read'])
    return false
  }
}
