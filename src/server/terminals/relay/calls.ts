import { type ErrorCode, type FieldFault, RsmError } from '../../../core/errors.ts'
import type { Log } from '../../../disk/log.ts'
import type { TerminalSite } from '../../storage/ports/cluster.ts'
import type { Channel, ChannelEvents, OpenChannel } from './channel.ts'

/** Milliseconds to wait for a live server: an agent may take 15 s to open a terminal. */
const longestCall = 30_000

/** Methods of `TerminalSite` except `attach`. */
export const methods = ['open', 'has', 'isAttachable', 'expect', 'end', 'live', 'handOver'] as const

interface SentError {
  readonly code: ErrorCode
  readonly message: string
  readonly fields: readonly FieldFault[]
  readonly hint?: string
  readonly retryAfter?: number
}

interface Pending {
  readonly timer: NodeJS.Timeout
  resolve(value: unknown): void
  reject(error: Error): void
}

/**
 * RPC client for another server's site. `fault` creates errors of unanswered calls; `ended`: the channel
 * closed.
 */
export class Calls implements ChannelEvents {
  readonly #pending = new Map<number, Pending>()
  readonly #fault: () => RsmError
  readonly #ended: () => void
  readonly #channel: Channel
  #last = 0

  constructor(open: OpenChannel, fault: () => RsmError, ended: () => void) {
    this.#fault = fault
    this.#ended = ended
    this.#channel = open(this)
  }

  received([how, id, value]: readonly unknown[]): void {
    const pending = this.#take(id as number)
    if (how === 'answer') pending?.resolve(value)
    else if (pending) {
      const { code, message, ...more } = value as SentError
      pending.reject(new RsmError(code, message, more))
    }
  }

  closed(): void {
    this.#ended()
    const fault = this.#fault()
    for (const id of this.#pending.keys()) this.#take(id)?.reject(fault)
  }

  call(method: string, args: unknown[]): Promise<unknown> {
    const id = ++this.#last
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#take(id)?.reject(this.#fault()), longestCall)
      this.#pending.set(id, { timer, resolve, reject })
      this.#channel.send([method, id, ...args])
    })
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id)
    clearTimeout(pending?.timer)
    this.#pending.delete(id)
    return pending
  }
}

export async function answerCall(
  site: TerminalSite,
  [method, id, ...args]: readonly unknown[],
  { channel, log }: { channel: Channel; log: Log },
): Promise<void> {
  try {
    const asked = methods.find((one) => one === method)
    if (asked === undefined) throw new RsmError('internal', `unknown call ${String(method)}`)
    const value = await (site[asked] as (...given: unknown[]) => Promise<unknown>)(...args)
    channel.send(['answer', id, value])
  } catch (error) {
    const isKnown = error instanceof RsmError
    if (!isKnown || error.code === 'internal')
      log.error({ err: error, method }, 'a call of another server failed')
    channel.send(['failed', id, isKnown ? sentError(error) : failed])
  }
}

/** Sent for unexpected errors, whose details stay on this server. */
const failed: SentError = { code: 'internal', message: 'the server of the session failed', fields: [] }

function sentError({ code, message, fields, hint, retryAfter }: RsmError): SentError {
  return { code, message, fields, ...(hint && { hint }), ...(retryAfter && { retryAfter }) }
}
