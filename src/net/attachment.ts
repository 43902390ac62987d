import { codeOfStatus, mendable, RsmError } from '../core/errors.ts'
import { closeCodes } from '../core/protocol/close-codes.ts'
import type { TerminalClosed } from '../core/protocol/messages.ts'
import {
  type FromTerminalClient,
  reattachWindow,
  type TerminalNotice,
  type TerminalPayloads,
  type ToTerminalClient,
} from '../core/terminals/terminal.ts'
import { Backoff, pause } from './backoff.ts'
import { Acknowledgement, type InputSink, PendingInput, type Taken } from './flow-control.ts'

export type TerminalAttached = TerminalPayloads['TERMINAL_ATTACHED']

/**
 * How a session ended for its user: closed by its shell or the server; left, where `isReported` means that
 * the server confirmed it; or lost, with an unknown end.
 */
export type TerminalEnd =
  | { readonly kind: 'closed'; readonly closed: TerminalClosed }
  | { readonly kind: 'left'; readonly isReported: boolean }
  | { readonly kind: 'lost'; readonly error: RsmError; readonly isReplaced?: boolean }

export interface TerminalSocket {
  readonly isOpen: boolean
  /** Bytes not yet sent. */
  readonly bufferedAmount: number
  /** `sent` is passed with input, and called when the network has accepted it. */
  send(frame: string, sent?: () => void): void
  close(code?: number, reason?: string): void
  terminate(): void
  /** Called once, before any event. `code` is 1006 without a close frame. */
  listen(heard: {
    readonly message: (text: string) => void
    readonly closed: (code: number, reason: string) => void
  }): void
}

/** Continues after output `after`. Errors: why the session cannot be attached; any, after an abort. */
export type OpenTerminalSocket = (after: number | undefined, signal: AbortSignal) => Promise<TerminalSocket>

export interface AttachmentOptions {
  readonly sessionId: string
  readonly watch: boolean
  readonly open: OpenTerminalSocket
  readonly attached: (attached: TerminalAttached, again: boolean) => void
  /** Call `shown` once the output is displayed or stored: only then is it acknowledged. */
  readonly output: (data: string, shown: () => void, sequence: number) => void
  readonly resized: (cols: number, rows: number) => void
  readonly notice: (notice: TerminalNotice) => void
  /** The server refused a frame; `message` is for people. */
  readonly refused: (message: string) => void
  /** The connection is lost and is being resumed. */
  readonly cut: () => void
  /** Input is accepted again after it was `full`. */
  readonly drained: () => void
  /** Milliseconds for which a lost connection is resumed. */
  readonly window?: number
}

interface Size {
  readonly cols: number
  readonly rows: number
}

/** `stood`: the session was attached over that connection. */
type Cut = { readonly kind: 'cut'; readonly error: RsmError; readonly stood: boolean }

const pace = { first: 250, longest: 2_000 }
/** Milliseconds that the server may take to end a session that is left. */
const leaveTimeout = 3_000

/** Meaning of a close without TERMINAL_CLOSED: most are accidents. */
function meaningOf(code: number, reason: string, stood: boolean): TerminalEnd | Cut {
  const said = reason === '' ? ` with code ${code}` : `: ${reason}`
  switch (code) {
    case closeCodes.replaced:
      return {
        kind: 'lost',
        error: new RsmError('conflict', 'another client has taken over the session'),
        isReplaced: true,
      }
    case closeCodes.revoked:
      return { kind: 'lost', error: new RsmError('unauthenticated', 'the login or token has ended') }
    case closeCodes.protocolFault:
    case closeCodes.tooLarge:
      return { kind: 'lost', error: new RsmError('internal', `the server closed the connection${said}`) }
    default:
      return { kind: 'cut', error: new RsmError('unreachable', `the connection was closed${said}`), stood }
  }
}

/** A client's attachment to a terminal session: survives lost connections, and ends once (contract §7). */
export class Attachment {
  readonly #options: AttachmentOptions
  #input: PendingInput
  readonly #acks = new Acknowledgement()
  readonly #leaving = new AbortController()
  #leaveTimer: ReturnType<typeof setTimeout> | undefined
  #socket: TerminalSocket | undefined
  #frames = 0
  /** Last received output; undefined before the first attach. */
  #received: number | undefined
  /** Size of the terminal here, and the size that the server knows. */
  #size: Size | undefined
  #known: Size | undefined
  #wasAttached = false
  #isAttached = false
  #sink: InputSink | undefined

  constructor(options: AttachmentOptions) {
    this.#options = options
    this.#input = this.#newInput()
  }

  /** Resolves when the session ends. Errors: why it could not be attached at first. */
  async run(): Promise<TerminalEnd> {
    const first = await this.#open().then(
      (socket) => this.#converse(socket),
      (error: unknown) => this.#whileLeaving(error),
    )
    return first.kind === 'cut' ? this.#takeUp() : first
  }

  /** As `run`, but retries from the start, as after a lost connection or a takeover. */
  async resume(): Promise<TerminalEnd> {
    const first = await this.#again()
    return first.kind === 'cut' ? this.#takeUp() : first
  }

  /** While disconnected, input is kept up to a limit, and then refused. */
  type(data: string): Taken {
    // A closing socket accepts no more input.
    if (this.#socket?.isOpen !== true) this.#input.detach()
    return this.#input.push(data)
  }

  resize(cols: number, rows: number): void {
    this.#size = { cols, rows }
    if (!this.#isAttached || this.#options.watch || (this.#known?.cols === cols && this.#known.rows === rows))
      return
    if (this.#send('TERMINAL_RESIZE', this.#size)) this.#known = this.#size
  }

  /** Ends the session; a watcher only stops watching. */
  leave(): void {
    if (this.#leaving.signal.aborted) return
    this.#leaving.abort()
    if (this.#options.watch) this.#socket?.close()
    else this.#send('TERMINAL_CLOSE', {})
    this.#leaveTimer = setTimeout(() => this.#socket?.terminate(), leaveTimeout)
  }

  /** Disconnects; the session stays open for a later attach. */
  drop(): void {
    this.#leaving.abort()
    this.#socket?.terminate()
  }

  #newInput(): PendingInput {
    const { drained, refused } = this.#options
    return new PendingInput({ drained, lost: refused })
  }

  #open(): Promise<TerminalSocket> {
    return this.#options.open(this.#received, this.#leaving.signal)
  }

  #whileLeaving(error: unknown): TerminalEnd {
    if (this.#leaving.signal.aborted) return { kind: 'left', isReported: false }
    throw error
  }

  async #takeUp(): Promise<TerminalEnd> {
    const { window = reattachWindow } = this.#options
    const { signal } = this.#leaving
    const backoff = new Backoff(pace)
    let failingSince = performance.now()
    if (!signal.aborted) this.#options.cut()
    while (!signal.aborted) {
      const end = await this.#again()
      if (end.kind !== 'cut') return end
      if (end.stood) {
        failingSince = performance.now()
        backoff.reset()
        if (!signal.aborted) this.#options.cut()
      } else if (performance.now() - failingSince >= window) return { kind: 'lost', error: end.error }
      await pause(backoff.next(), signal)
    }
    return { kind: 'left', isReported: false }
  }

  async #again(): Promise<TerminalEnd | Cut> {
    try {
      return await this.#converse(await this.#open())
    } catch (error) {
      if (!(error instanceof RsmError)) return this.#whileLeaving(error)
      return mendable(error) ? { kind: 'cut', error, stood: false } : { kind: 'lost', error }
    }
  }

  #converse(socket: TerminalSocket): Promise<TerminalEnd | Cut> {
    this.#socket = socket
    /** Error of the server before the attach. */
    let refusal: RsmError | null = null
    return new Promise((resolve) => {
      const message = (text: string) => {
        let message: ToTerminalClient
        try {
          message = JSON.parse(text) as ToTerminalClient
        } catch {
          return socket.close(closeCodes.protocolFault, 'not JSON')
        }
        if (message.type === 'TERMINAL_CLOSED') {
          const isLeft = this.#leaving.signal.aborted
          resolve(isLeft ? { kind: 'left', isReported: true } : { kind: 'closed', closed: message.payload })
          return socket.close()
        }
        if (message.type !== 'ERROR' || this.#isAttached) return this.#receive(message)
        refusal = new RsmError(codeOfStatus(message.payload.code), message.payload.message)
      }
      const closed = (code: number, reason: string) => {
        const stood = this.#isAttached
        this.#isAttached = false
        this.#input.detach()
        this.#sink = undefined
        // Another client has changed the session meanwhile: discard pending input.
        if (code === closeCodes.replaced) this.#input = this.#newInput()
        this.#acks.detach()
        clearTimeout(this.#leaveTimer)
        if (refusal === null) resolve(meaningOf(code, reason, stood))
        else if (mendable(refusal)) resolve({ kind: 'cut', error: refusal, stood })
        else resolve({ kind: 'lost', error: refusal })
      }
      socket.listen({ message, closed })
    })
  }

  #receive(message: Exclude<ToTerminalClient, { type: 'TERMINAL_CLOSED' }>): void {
    switch (message.type) {
      case 'TERMINAL_ATTACHED':
        this.#attach(message.payload)
        return
      case 'TERMINAL_TYPED':
        if (this.#sink !== undefined) this.#input.attach(this.#sink, message.payload)
        return
      case 'TERMINAL_OUTPUT': {
        const { sequence, data } = message.payload
        if (this.#received !== undefined && sequence <= this.#received) return
        this.#received = sequence
        this.#options.output(data, () => this.#acks.displayed(sequence, data.length), sequence)
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
    const socket = this.#socket
    this.#isAttached = true
    this.#received = Math.max(this.#received ?? -1, attached.after)
    this.#known = attached
    this.#options.attached(attached, this.#wasAttached)
    this.#wasAttached = true
    this.#acks.attach((sequence) => this.#send('TERMINAL_ACK', { sequence }))
    if (this.#options.watch || socket === undefined) return
    const { cols, rows } = this.#size ?? attached
    this.resize(cols, rows)
    this.#sink = {
      get bufferedAmount() {
        return socket.bufferedAmount
      },
      send: (data, place, sent) => this.#send('TERMINAL_INPUT', { data, ...place }, sent),
    }
    if (attached.typed !== null) this.#input.attach(this.#sink, attached.typed)
  }

  /** False without a connection: the frame is dropped. */
  #send<T extends FromTerminalClient['type']>(
    type: T,
    payload: Omit<TerminalPayloads[T], 'sessionId'>,
    sent?: () => void,
  ): boolean {
    if (this.#socket?.isOpen !== true) return false
    this.#frames++
    const { sessionId } = this.#options
    const timestamp = new Date().toISOString()
    const frame = { type, id: `c${this.#frames}`, timestamp, payload: { sessionId, ...payload } }
    this.#socket.send(JSON.stringify(frame), sent)
    return true
  }
}
