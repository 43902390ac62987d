import { setTimeout as delay } from 'node:timers/promises'
import type { WebSocket } from 'ws'
import { codeOfStatus, RsmError } from '../../core/errors.ts'
import { closeCodes } from '../../core/protocol/close-codes.ts'
import type { TerminalClosed } from '../../core/protocol/messages.ts'
import {
  type FromTerminalClient,
  reattachWindow,
  type TerminalNotice,
  type TerminalPayloads,
  type ToTerminalClient,
  terminalSubprotocol,
} from '../../core/protocol/terminal-messages.ts'
import { withQuery } from '../http/api.ts'
import { mendable } from '../http/event-stream.ts'
import { Acknowledgement } from './acknowledgement.ts'
import { HeldInput, type Taken } from './held-input.ts'
import { keepAlive } from './keep-alive.ts'

export type TerminalAttached = TerminalPayloads['TERMINAL_ATTACHED']

/**
 * How a session ended for its user: its shell or the server ended it; it was left, of which the server is `told` or not;
 * or it is lost: nobody can say how it ends.
 */
export type TerminalEnd =
  | { readonly kind: 'closed'; readonly closed: TerminalClosed }
  | { readonly kind: 'left'; readonly told: boolean }
  | { readonly kind: 'lost'; readonly error: RsmError }

export interface AttachmentOptions {
  readonly sessionId: string
  /** Reads along only. */
  readonly watch: boolean
  readonly socket: (path: string, protocol: string, signal: AbortSignal) => Promise<WebSocket>
  readonly attached: (attached: TerminalAttached, again: boolean) => void
  /** `shown` is called once it stands where it was to go: only then the server lets go of it. */
  readonly output: (data: string, shown: () => void) => void
  readonly resized: (cols: number, rows: number) => void
  readonly notice: (notice: TerminalNotice) => void
  /** What was sent was refused, with a sentence for people. */
  readonly refused: (message: string) => void
  /** The connection is lost; it is being taken up again. */
  readonly cut: () => void
  /** There is room for input again after it was `full`. */
  readonly drained: () => void
  /** Milliseconds for which a lost connection is taken up again. */
  readonly window?: number
}

/** `stood`: the session had been entered over that connection. */
type Cut = { readonly kind: 'cut'; readonly error: RsmError; readonly stood: boolean }

const firstPause = 250
const longestPause = 2_000
/** How long the server may take to end a session that is left. */
const leaveTimeout = 3_000

/** What a close without a TERMINAL_CLOSED means: most are accidents. */
function meaningOf(code: number, reason: string, stood: boolean): TerminalEnd | Cut {
  const said = reason === '' ? `with code ${code}` : `and said: ${reason}`
  switch (code) {
    case closeCodes.replaced:
      return {
        kind: 'lost',
        error: new RsmError('conflict', 'another client has taken the session over'),
      }
    case closeCodes.revoked:
      return { kind: 'lost', error: new RsmError('unauthenticated', 'the login or token has ended') }
    case closeCodes.protocolFault:
    case closeCodes.tooLarge:
      return { kind: 'lost', error: new RsmError('internal', `the server closed the connection ${said}`) }
    default:
      return { kind: 'cut', error: new RsmError('unreachable', `the connection was closed ${said}`), stood }
  }
}

/** One client's hold on a terminal session: it survives cuts of the network, and ends once (contract §7). */
export class Attachment {
  readonly #options: AttachmentOptions
  readonly #input: HeldInput
  readonly #shown = new Acknowledgement()
  readonly #leaving = new AbortController()
  #socket: WebSocket | undefined
  #frames = 0
  /** The last output that came; undefined before anything is known. */
  #received: number | undefined
  #size: { cols: number; rows: number } | undefined
  #wasAttached = false
  #isAttached = false

  constructor(options: AttachmentOptions) {
    this.#options = options
    this.#input = new HeldInput(options.drained)
  }

  /** Settles with the session's end. Errors: why it could not be entered in the first place. */
  async run(): Promise<TerminalEnd> {
    const socket = await this.#connect().catch((error: unknown) => {
      if (this.#leaving.signal.aborted) return null
      throw error
    })
    if (socket === null) return { kind: 'left', told: false }
    const first = await this.#converse(socket)
    return first.kind === 'cut' ? this.#takeUp(first) : first
  }

  /** While the connection is lost it is kept for the next one, up to a bound, and then refused. */
  type(data: string): Taken {
    return this.#input.push(data)
  }

  resize(cols: number, rows: number): void {
    this.#size = { cols, rows }
    if (this.#isAttached) this.#send('TERMINAL_RESIZE', this.#size)
  }

  /** Ends the session; a watcher only ends watching. */
  leave(): void {
    if (this.#leaving.signal.aborted) return
    this.#leaving.abort()
    if (this.#options.watch) this.#socket?.close()
    else this.#send('TERMINAL_CLOSE', {})
    setTimeout(() => this.#socket?.terminate(), leaveTimeout).unref()
  }

  #connect(): Promise<WebSocket> {
    const { sessionId, watch, socket } = this.#options
    const query = { after: this.#received, watch: watch || undefined }
    const path = withQuery(`/ws/terminal/${encodeURIComponent(sessionId)}`, query)
    return socket(path, terminalSubprotocol, this.#leaving.signal)
  }

  async #takeUp(cut: Cut): Promise<TerminalEnd> {
    const { window = reattachWindow } = this.#options
    const { signal } = this.#leaving
    let { error } = cut
    let failingSince = performance.now()
    let pause = firstPause
    if (!signal.aborted) this.#options.cut()
    while (!signal.aborted) {
      const end = await this.#again()
      if (end.kind !== 'cut') return end
      error = end.error
      if (end.stood) {
        failingSince = performance.now()
        pause = firstPause
        if (!signal.aborted) this.#options.cut()
      } else if (performance.now() - failingSince >= window) return { kind: 'lost', error }
      await delay(pause, undefined, { signal }).catch(() => undefined)
      pause = Math.min(pause * 2, longestPause)
    }
    return { kind: 'left', told: false }
  }

  async #again(): Promise<TerminalEnd | Cut> {
    try {
      return await this.#converse(await this.#connect())
    } catch (error) {
      if (mendable(error)) return { kind: 'cut', error, stood: false }
      if (error instanceof RsmError) return { kind: 'lost', error }
      throw error
    }
  }

  /** All that comes over one connection, to its end. */
  #converse(socket: WebSocket): Promise<TerminalEnd | Cut> {
    this.#socket = socket
    keepAlive(socket)
    /** Why the session could not be entered after all. */
    let refusal: RsmError | null = null
    return new Promise((resolve) => {
      socket.on('message', (data: Buffer) => {
        let message: ToTerminalClient
        try {
          message = JSON.parse(data.toString('utf8')) as ToTerminalClient
        } catch {
          socket.close(closeCodes.protocolFault, 'not JSON')
          return
        }
        if (message.type === 'TERMINAL_CLOSED') {
          const isLeft = this.#leaving.signal.aborted
          resolve(isLeft ? { kind: 'left', told: true } : { kind: 'closed', closed: message.payload })
          socket.close()
        } else if (message.type === 'ERROR' && !this.#isAttached) {
          const { code, message: sentence } = message.payload
          refusal = new RsmError(codeOfStatus(code), sentence)
        } else this.#receive(message)
      })
      socket.once('close', (code, reason) => {
        const stood = this.#isAttached
        this.#isAttached = false
        this.#input.detach()
        this.#shown.detach()
        if (refusal === null) resolve(meaningOf(code, reason.toString('utf8'), stood))
        else
          resolve(
            mendable(refusal) ? { kind: 'cut', error: refusal, stood } : { kind: 'lost', error: refusal },
          )
      })
      // It comes paused, so that nothing came before there was somebody to hear it.
      socket.resume()
    })
  }

  #receive(message: Exclude<ToTerminalClient, { type: 'TERMINAL_CLOSED' }>): void {
    switch (message.type) {
      case 'TERMINAL_ATTACHED':
        this.#attach(message.payload)
        return
      case 'TERMINAL_OUTPUT': {
        const { sequence, data } = message.payload
        if (this.#received !== undefined && sequence <= this.#received) return
        this.#received = sequence
        this.#options.output(data, () => this.#shown.shown(sequence, data.length))
        return
      }
      case 'TERMINAL_RESIZE':
        this.#options.resized(message.payload.cols, message.payload.rows)
        return
      case 'TERMINAL_NOTICE':
        this.#options.notice(message.payload)
        return
      case 'ERROR':
        this.#options.refused(message.payload.message)
    }
  }

  #attach(attached: TerminalAttached): void {
    this.#isAttached = true
    this.#received = Math.max(this.#received ?? -1, attached.after)
    this.#options.attached(attached, this.#wasAttached)
    this.#wasAttached = true
    this.#shown.attach((sequence) => this.#send('TERMINAL_ACK', { sequence }))
    if (this.#options.watch) return
    const { cols, rows } = this.#size ?? attached
    if (cols !== attached.cols || rows !== attached.rows) this.#send('TERMINAL_RESIZE', { cols, rows })
    const socket = this.#socket
    if (socket === undefined) return
    this.#input.attach({
      get bufferedAmount() {
        return socket.bufferedAmount
      },
      send: (data, sent) => this.#send('TERMINAL_INPUT', { data }, sent),
    })
  }

  #send<T extends FromTerminalClient['type']>(
    type: T,
    payload: Omit<TerminalPayloads[T], 'sessionId'>,
    sent?: () => void,
  ): void {
    if (this.#socket?.readyState !== this.#socket?.OPEN) return
    this.#frames++
    const { sessionId } = this.#options
    const timestamp = new Date().toISOString()
    const frame = { type, id: `c${this.#frames}`, timestamp, payload: { sessionId, ...payload } }
    this.#socket?.send(JSON.stringify(frame), () => sent?.())
  }
}
