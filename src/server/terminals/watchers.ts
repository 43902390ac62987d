import { closeCodes } from '../../core/protocol/close-codes.ts'
import type { TerminalMessageType, TerminalPayloads } from '../../core/protocol/terminal-messages.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import type { Attachment, TerminalClient } from '../storage/ports/terminal-client.ts'
import type { Replay } from './replay.ts'
import { Viewer } from './viewer.ts'

/** Reading along costs a socket and its buffers. */
const most = 20

/** Those who read along at one terminal: they type nothing, and hold nothing up. */
export class Watchers {
  readonly #viewers = new Set<Viewer>()
  readonly #replay: Replay
  readonly #left: (client: TerminalClient) => void

  constructor(replay: Replay, left: (client: TerminalClient) => void) {
    this.#replay = replay
    this.#left = left
  }

  get names(): string[] {
    return [...this.#viewers].map(({ client }) => client.caller.username)
  }

  get callers(): UserCaller[] {
    return [...this.#viewers].map(({ client }) => client.caller)
  }

  /** Null when there are too many. */
  add(client: TerminalClient, after: number): Viewer | null {
    if (this.#viewers.size >= most) return null
    const viewer = new Viewer(client, after, true, () => {
      if (this.#viewers.has(viewer)) this.#send(viewer)
    })
    this.#viewers.add(viewer)
    return viewer
  }

  attachment(viewer: Viewer): Attachment {
    const { client } = viewer
    const message = 'you only read along: nothing that you type goes to the session'
    return {
      input: (_data, refId) => client.send('ERROR', { code: 403, message, refId }),
      resize: () => undefined,
      acknowledge: () => undefined,
      leave: () => client.close(1000, 'left'),
      gone: () => {
        if (this.#viewers.delete(viewer)) this.#left(client)
      },
      parted: () => undefined,
    }
  }

  pump(): void {
    for (const viewer of this.#viewers) this.#send(viewer)
  }

  #send(viewer: Viewer): void {
    if (!viewer.pump(this.#replay)) viewer.client.close(closeCodes.overloaded, 'reads too slowly')
  }

  tell<T extends TerminalMessageType>(type: T, payload: TerminalPayloads[T]): void {
    for (const { client } of this.#viewers) client.send(type, payload)
  }

  /** Closes those whose token has ended. */
  dismiss(hasEnded: (caller: UserCaller) => boolean): void {
    for (const { client } of this.#viewers)
      if (hasEnded(client.caller)) client.close(closeCodes.revoked, 'the token has ended')
  }

  /** Closes all of them, and nobody is told that they left. */
  close(code: number, reason: string): void {
    const all = [...this.#viewers]
    this.#viewers.clear()
    for (const { client } of all) client.close(code, reason)
  }
}
