import { closeCodes } from '../../../../core/protocol/close-codes.ts'
import type { TerminalSite } from '../../ports/cluster.ts'
import type { Attachment, TerminalClient } from '../../ports/terminal-client.ts'
import { callerOf, sentError, type ToClient, type ToSite } from './messages.ts'

/** A socket that was closed may tell for so many milliseconds that both sides have closed it in order. */
const partsWithin = 5_000
/** Bytes on their way to one client, beyond the 256 KiB of output that a terminal sends ahead of it: it is never read. */
const mostOnItsWay = 4 * 1024 * 1024

export type SendToClient = (message: ToClient, body?: Uint8Array, taken?: () => void) => void
type Attach = Extract<ToSite, { t: 'attach' }>
/** What comes for one that is attached. */
type ForAttached = Exclude<ToSite, { t: 'attach' | 'call' }>

/** A client of another server, as a terminal of this one sees it. */
class ServedClient implements TerminalClient {
  readonly caller: TerminalClient['caller']
  readonly ip: string | null
  readonly acknowledges: boolean
  readonly #id: number
  readonly #send: SendToClient
  /** Outputs that the client's socket has not taken, as far as is known. */
  #unwritten: { sequence: number; written: () => void }[] = []
  #written = 0
  #onItsWay = 0
  #isClosed = false

  constructor({ id, caller, ip, acknowledges }: Attach, send: SendToClient) {
    this.#id = id
    this.caller = callerOf(caller)
    this.ip = ip
    this.acknowledges = acknowledges
    this.#send = send
  }

  output(sequence: number, json: Uint8Array, written: () => void): void {
    this.#unwritten.push({ sequence, written })
    this.#pass({ t: 'output', id: this.#id, sequence }, json)
  }

  tell(notice: Parameters<TerminalClient['tell']>[0]): void {
    this.#pass({ t: 'tell', id: this.#id, notice })
  }

  send: TerminalClient['send'] = (type, payload) => this.#pass({ t: 'send', id: this.#id, type, payload })

  close(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#send({ t: 'close', id: this.#id, code, reason })
  }

  hold(): void {
    this.#pass({ t: 'hold', id: this.#id })
  }

  release(): void {
    this.#pass({ t: 'release', id: this.#id })
  }

  /** Its socket has taken the first `count` outputs. */
  took(count: number): void {
    this.#call(this.#unwritten.splice(0, count - this.#written))
  }

  /** What was shown was written before. */
  showed(sequence: number): void {
    const shown = this.#unwritten.findIndex((output) => output.sequence > sequence)
    this.#call(this.#unwritten.splice(0, shown < 0 ? this.#unwritten.length : shown))
  }

  #call(outputs: readonly { written: () => void }[]): void {
    this.#written += outputs.length
    for (const { written } of outputs) written()
  }

  #pass(message: ToClient, body?: Uint8Array): void {
    if (this.#isClosed) return
    const size = (body?.length ?? 0) + 200
    this.#onItsWay += size
    if (this.#onItsWay > mostOnItsWay) return this.close(closeCodes.overloaded, 'the client does not read')
    this.#send(message, body, () => {
      this.#onItsWay -= size
    })
  }
}

interface Served {
  readonly peer: number
  readonly client: ServedClient
  readonly attachment: Attachment
  /** Says that it is no more. */
  readonly done: () => void
  /** Its socket is gone; it may still part. */
  leaving: NodeJS.Timeout | null
}

/** The clients of other servers that are attached to terminals of this one. */
export class ServedClients {
  readonly #served = new Map<string, Served>()

  attach(peer: number, site: TerminalSite | undefined, asked: Attach, send: SendToClient): void {
    const { id, sessionId, after, watch } = asked
    const client = new ServedClient(asked, send)
    try {
      if (!site) throw new Error('no site of that server')
      const attachment = site.attach(sessionId, client, { after, watch })
      const done = () => send({ t: 'done', id })
      this.#served.set(`${peer} ${id}`, { peer, client, attachment, done, leaving: null })
    } catch (error) {
      send({ t: 'refused', id, error: sentError(error) })
    }
  }

  heard(peer: number, message: ForAttached): void {
    const served = this.#served.get(`${peer} ${message.id}`)
    if (!served) return
    const { attachment, client } = served
    switch (message.t) {
      case 'input':
        return attachment.input(message.data, message.frameId, message.place)
      case 'resize':
        return attachment.resize(message.cols, message.rows)
      case 'acknowledge':
        client.showed(message.sequence)
        return attachment.acknowledge(message.sequence)
      case 'written':
        return client.took(message.count)
      case 'leave':
        return attachment.leave()
      case 'gone':
        return this.#gone(served, message.id)
      case 'parted':
        this.#forget(served, message.id)
        return attachment.parted()
    }
  }

  /** Null: all of them are. */
  lost(peer: number | null): void {
    for (const [key, served] of this.#served) {
      if (peer !== null && served.peer !== peer) continue
      this.#served.delete(key)
      if (served.leaving) clearTimeout(served.leaving)
      else served.attachment.gone()
    }
  }

  /** As `lost`, and the other server is told so. */
  part(peer: number): void {
    for (const { peer: its, client, done } of this.#served.values()) {
      if (its !== peer) continue
      client.close(closeCodes.shuttingDown, 'the server of the client stood still for too long')
      done()
    }
    this.lost(peer)
  }

  get peers(): number[] {
    return [...this.#served.values()].map(({ peer }) => peer)
  }

  #gone(served: Served, id: number): void {
    if (served.leaving) return
    served.leaving = setTimeout(() => this.#forget(served, id), partsWithin).unref()
    served.attachment.gone()
  }

  #forget(served: Served, id: number): void {
    if (served.leaving) clearTimeout(served.leaving)
    this.#served.delete(`${served.peer} ${id}`)
    served.done()
  }
}
