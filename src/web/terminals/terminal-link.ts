import { HeldInput } from '../../client/terminal/held-input.ts'
import { closeCodes } from '../../core/protocol/close-codes.ts'
import type {
  Terminal,
  TerminalCreate,
  TerminalCreated,
  TerminalTicket,
} from '../../core/protocol/http/terminals.ts'
import type { TerminalClosed } from '../../core/protocol/messages.ts'
import type {
  TerminalNotice,
  TerminalPayloads,
  ToTerminalClient,
} from '../../core/protocol/terminal-messages.ts'
import { OncePerBurst } from '../../ui/terminal/once-per-burst.ts'
import { call, isMendable, said, send } from '../api.ts'
import { pause } from '../event-stream.ts'
import { endSession } from '../session.ts'
import { openTerminalSocket, type TerminalSocket } from './terminal-socket.ts'

export type Attached = TerminalPayloads['TERMINAL_ATTACHED']

export type LinkState =
  | { readonly kind: 'opening' | 'open' | 'away' | 'replaced' }
  /** For good; `word` says how. */
  | { readonly kind: 'ended'; readonly word: string }

interface LinkListener {
  state(state: LinkState): void
  /** The host has opened it: what to come back to. */
  named(sessionId: string): void
  /** `isFresh`: what follows is the whole of what the server holds, not what follows the last that was shown. */
  attached(about: Attached, isFresh: boolean): void
  /** `shown` is called when the text is on the screen: only then is it acknowledged. */
  output(data: string, sequence: number, shown: () => void): void
  resized(cols: number, rows: number): void
  /** `kind` is null where it is no notice of the server's about the session. */
  notice(message: string, kind: TerminalNotice['kind'] | null): void
}

/** What a tab holds on to: a session that is to be made, or one that there is. */
export type LinkTarget =
  | { readonly create: TerminalCreate }
  | { readonly sessionId: string; readonly watch: boolean }

export interface TerminalLink {
  input(data: string): void
  resize(cols: number, rows: number): void
  /** Takes the session back from whoever has attached to it since. */
  takeBack(): void
  /** Lets go of it; the server waits for a while for somebody to come back. */
  drop(): void
  /** Ends the session and what runs in it. */
  end(): void
}

const firstPause = 250
const longestPause = 3_000
/** A server that can't be reached for so long has ended the session in any case, ten times over. */
const longestAway = 10 * 60_000
/** Output is acknowledged that often at least, in characters. */
const ackEvery = 64 * 1024
const ackDelay = 15
const tooMuch = 'The connection is away, and there is no room for what you typed: it is dropped.'

function endSaid({
  exitCode,
  signal,
  reason,
}: Pick<TerminalClosed, 'exitCode' | 'signal' | 'reason'>): string {
  if (reason !== null) return `The session has ended: ${reason}`
  if (signal !== null) return `The shell was ended by ${signal}`
  return exitCode === null ? 'The session has ended' : `The shell has ended with exit code ${exitCode}`
}

/** A session and the sockets that carry it, one after the other: a cut is taken up again behind the last output shown. */
export function createTerminalLink(target: LinkTarget, listener: LinkListener): TerminalLink {
  let sessionId = 'sessionId' in target ? target.sessionId : undefined
  const isWatching = 'sessionId' in target && target.watch
  const leave = new AbortController()
  let socket: TerminalSocket | undefined
  let isEnded = false
  /** The last output that has come; undefined until a first has. */
  let last: number | undefined
  let shownTo = -1
  let ackedTo = -1
  let unacknowledged = 0
  let ackTimer: ReturnType<typeof setTimeout> | undefined
  let size: { cols: number; rows: number } | undefined
  const refusals = new OncePerBurst()
  /** What is typed while there is no connection waits in it; without one, as when another has the session, it goes nowhere. */
  let input: HeldInput | undefined = isWatching ? undefined : new HeldInput(() => undefined)

  const pathOf = (id: string) => `api/terminals/${encodeURIComponent(id)}`

  function finish(word: string): void {
    isEnded = true
    input = undefined
    listener.state({ kind: 'ended', word })
  }

  function acknowledge(): void {
    clearTimeout(ackTimer)
    ackTimer = undefined
    if (sessionId === undefined || shownTo <= ackedTo) return
    const payload = { sessionId, sequence: shownTo }
    if (!isWatching && socket?.send({ type: 'TERMINAL_ACK', payload }) !== true) return
    ackedTo = shownTo
    unacknowledged = 0
  }

  function receive(message: ToTerminalClient): void {
    switch (message.type) {
      case 'TERMINAL_ATTACHED': {
        const isFresh = last === undefined
        // Another client may have given it a size of its own.
        size = { cols: message.payload.cols, rows: message.payload.rows }
        last = Math.max(last ?? -1, message.payload.after)
        // What was shown may not have been heard of there before the cut.
        ackedTo = -1
        listener.attached(message.payload, isFresh)
        listener.state({ kind: 'open' })
        if (!isFresh) acknowledge()
        sendTyped()
        return
      }
      case 'TERMINAL_OUTPUT': {
        const { data, sequence } = message.payload
        if (last !== undefined && sequence <= last) return
        last = sequence
        listener.output(data, sequence, () => {
          shownTo = Math.max(shownTo, sequence)
          unacknowledged += data.length
          if (unacknowledged >= ackEvery) acknowledge()
          else ackTimer ??= setTimeout(acknowledge, ackDelay)
        })
        return
      }
      case 'TERMINAL_RESIZE':
        return listener.resized(message.payload.cols, message.payload.rows)
      case 'TERMINAL_NOTICE':
        return listener.notice(message.payload.message, message.payload.kind)
      case 'TERMINAL_CLOSED':
        return finish(endSaid(message.payload))
      case 'ERROR':
        return refused(message.payload.message)
    }
  }

  /** Said once, however many frames it is said of. */
  function refused(sentence: string): void {
    if (refusals.isNews(sentence)) listener.notice(sentence, null)
  }

  /** What was typed goes on to this socket, and what will be. */
  function sendTyped(): void {
    const held = socket
    const id = sessionId
    if (held === undefined || id === undefined) return
    input?.attach({
      // Nobody can be kept from typing or pasting into a page.
      bufferedAmount: 0,
      send(data) {
        held.send({ type: 'TERMINAL_INPUT', payload: { sessionId: id, data } })
      },
    })
  }

  /** One socket from its ticket to its end; its close code. */
  function attach({ path, ticket }: Pick<TerminalTicket, 'path' | 'ticket'>): Promise<number> {
    return new Promise((closed) => {
      socket = openTerminalSocket({ path, ticket, after: last }, { message: receive, closed })
      leave.signal.addEventListener('abort', () => closed(1000))
    })
  }

  async function hold(id: string, first?: Pick<TerminalTicket, 'path' | 'ticket'>): Promise<void> {
    let given = first
    let wait = firstPause
    let awaySince: number | undefined
    while (!leave.signal.aborted) {
      try {
        given ??= await call<TerminalTicket>('POST', `${pathOf(id)}/ticket`, {
          body: { watch: isWatching },
        })
        const began = performance.now()
        const code = await attach(given)
        input?.detach()
        if (leave.signal.aborted || isEnded) return
        if (code === closeCodes.replaced) {
          input = undefined
          return listener.state({ kind: 'replaced' })
        }
        if (code === closeCodes.revoked) endSession('Your session has ended. Sign in again.')
        if (performance.now() - began > longestPause) {
          wait = firstPause
          awaySince = undefined
        }
      } catch (error) {
        if (leave.signal.aborted) return
        if (!isMendable(error)) return finish(await howItEnded(id, error))
      }
      given = undefined
      listener.state({ kind: 'away' })
      awaySince ??= performance.now()
      if (performance.now() - awaySince > longestAway)
        return finish('The server could not be reached for too long')
      await pause(wait, leave.signal)
      wait = Math.min(wait * 2, longestPause)
    }
  }

  /** Why there is no ticket: what the session's record says, else what the refusal said. */
  async function howItEnded(id: string, refusal: unknown): Promise<string> {
    try {
      const record = await call<Terminal>('GET', pathOf(id))
      return record.status === 'CLOSED' ? endSaid(record) : said(refusal)
    } catch {
      return said(refusal)
    }
  }

  async function begin(): Promise<void> {
    listener.state({ kind: 'opening' })
    if (!('create' in target)) return hold(target.sessionId)
    try {
      const created = await call<TerminalCreated>('POST', 'api/terminals', { body: target.create })
      ;({ sessionId } = created)
      if (leave.signal.aborted) return remove()
      listener.named(sessionId)
      await hold(sessionId, created)
    } catch (error) {
      finish(said(error))
    }
  }

  function remove(): void {
    if (sessionId === undefined || isWatching || isEnded) return
    // One that has ended already, or a server that is away and will end it by itself: both are as well.
    send('DELETE', pathOf(sessionId)).catch(() => undefined)
  }
  function drop(): void {
    leave.abort()
    clearTimeout(ackTimer)
    socket?.drop()
  }

  void begin()
  return {
    input(data) {
      // One that is about to close takes nothing any more.
      if (socket?.isOpen !== true) input?.detach()
      if (input?.push(data) === 'refused') refused(tooMuch)
    },
    resize(cols, rows) {
      if (isWatching || sessionId === undefined) return
      if (size?.cols === cols && size.rows === rows) return
      if (socket?.send({ type: 'TERMINAL_RESIZE', payload: { sessionId, cols, rows } }) === true)
        size = { cols, rows }
    },
    takeBack() {
      if (sessionId === undefined) return
      if (!isWatching) input = new HeldInput(() => undefined)
      listener.state({ kind: 'opening' })
      void hold(sessionId)
    },
    drop,
    end() {
      remove()
      drop()
    },
  }
}
