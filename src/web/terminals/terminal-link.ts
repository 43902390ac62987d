import { withKnownColour } from '../../cli/terminal/term.ts'
import { mendable, type RsmError } from '../../core/errors.ts'
import type {
  Terminal,
  TerminalCreate,
  TerminalCreated,
  TerminalTicket,
} from '../../core/protocol/http/terminals.ts'
import type { TerminalClosed } from '../../core/protocol/messages.ts'
import { type TerminalNotice, terminalSubprotocol } from '../../core/protocol/terminal-messages.ts'
import { Burst } from '../../core/rates.ts'
import { Attachment, type TerminalAttached, type TerminalSocket } from '../../net/attachment.ts'
import { call, errorText, send } from '../api.ts'
import { endSession } from '../session.ts'

/** Milliseconds; a server that cannot be reached for longer has ended the session in any case. */
const longestAway = 10 * 60_000
const tooMuch = 'The connection is away, and there is no room for what you typed: it is dropped.'

/** Milliseconds within which the server answers, or the way to it is cut. */
const healthPatience = 8_000

const checkInterval = 2_000
/** Silence after which the way to the server is looked at … */
const longestSilence = 20_000
/** … and the same after something was typed. */
const longestEcho = 5_000

export type LinkState =
  | { readonly kind: 'opening' | 'open' | 'away' | 'replaced' }
  /** Forever; `word` says how. */
  | { readonly kind: 'ended'; readonly word: string }

interface LinkListener {
  state(state: LinkState): void
  /** The host has opened it: what to come back to. */
  named(sessionId: string): void
  /** `isFresh`: what follows is the whole of what the server holds, not what follows the last that was shown. */
  attached(about: TerminalAttached, isFresh: boolean): void
  /** `shown` is called when the text is on the screen: only then is it acknowledged. */
  output(data: string, sequence: number, shown: () => void): void
  resized(cols: number, rows: number): void
  /** `kind` is null where it is no notice of the server's about the session. */
  notice(message: string, kind: TerminalNotice['kind'] | null): void
}

/** What a tab holds on to: a session that is to be made, or one that there is. */
type LinkTarget =
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

/** A session and the sockets that carry it, one after the other. */
export function createTerminalLink(target: LinkTarget, listener: LinkListener): TerminalLink {
  const isWatching = 'sessionId' in target && target.watch
  const refusals = new Burst()
  let attachment: Attachment | undefined
  let sessionId: string | undefined
  let state: LinkState['kind'] = 'opening'
  let isDropped = false
  /** What is typed while the session is made. */
  let early = ''

  const pathOf = (id: string) => `api/terminals/${encodeURIComponent(id)}`
  const setState = (next: LinkState) => {
    state = next.kind
    if (!isDropped) listener.state(next)
  }
  const finish = (word: string) => setState({ kind: 'ended', word })
  /** Said once, however many frames it is said of. */
  const refused = (sentence: string) => {
    if (refusals.begins(performance.now(), sentence)) listener.notice(sentence, null)
  }

  function attachTo(id: string, first?: Pick<TerminalTicket, 'path' | 'ticket'>): Attachment {
    let given = first
    sessionId = id
    return new Attachment({
      sessionId: id,
      watch: isWatching,
      window: longestAway,
      async open(after, signal) {
        const body = { watch: isWatching }
        const { path, ticket } =
          given ?? (await call<TerminalTicket>('POST', `${pathOf(id)}/ticket`, { body, signal }))
        given = undefined
        signal.throwIfAborted()
        return openTerminalSocket(path, ticket, after)
      },
      attached(about, again) {
        listener.attached(about, !again)
        setState({ kind: 'open' })
      },
      output: (data, shown, sequence) => listener.output(data, sequence, shown),
      resized: (cols, rows) => listener.resized(cols, rows),
      notice: ({ message, kind }) => listener.notice(message, kind),
      refused,
      cut: () => setState({ kind: 'away' }),
      drained: () => undefined,
    })
  }

  async function follow(current: Attachment, id: string): Promise<void> {
    const end = await current.resume()
    if (end.kind === 'closed') finish(endText(end.closed))
    else if (end.kind === 'lost' && end.isReplaced === true) setState({ kind: 'replaced' })
    else if (end.kind === 'lost') finish(await howItEnded(id, end.error))
  }

  /** Why it can't be had any more: what the session's record says, else what the refusal said. */
  async function howItEnded(id: string, refusal: RsmError): Promise<string> {
    if (mendable(refusal)) return 'The server could not be reached for too long'
    if (refusal.code === 'unauthenticated') endSession('Your session has ended. Sign in again.')
    try {
      const record = await call<Terminal>('GET', pathOf(id))
      return record.status === 'CLOSED' ? endText(record) : errorText(refusal)
    } catch {
      return errorText(refusal)
    }
  }

  async function begin(): Promise<void> {
    setState({ kind: 'opening' })
    try {
      if ('create' in target) {
        const create = (body: TerminalCreate) => call<TerminalCreated>('POST', 'api/terminals', { body })
        const created = await withKnownColour(target.create, create)
        attachment = attachTo(created.sessionId, created)
        if (isDropped) return remove()
        if (attachment.type(early) === 'refused') refused(tooMuch)
        listener.named(created.sessionId)
        await follow(attachment, created.sessionId)
      } else {
        attachment = attachTo(target.sessionId)
        await follow(attachment, target.sessionId)
      }
    } catch (error) {
      finish(errorText(error))
    }
  }

  function remove(): void {
    if (sessionId === undefined || isWatching || state === 'ended') return
    // One that has ended already, or a server that is away and will end it by itself: both are as well.
    send('DELETE', pathOf(sessionId)).catch(() => undefined)
  }
  function drop(): void {
    isDropped = true
    attachment?.drop()
  }

  void begin()
  return {
    input(data) {
      if (isWatching || state === 'replaced' || state === 'ended') return
      if (attachment === undefined) early += data
      else if (attachment.type(data) === 'refused') refused(tooMuch)
    },
    resize: (cols, rows) => attachment?.resize(cols, rows),
    takeBack() {
      if (attachment === undefined || sessionId === undefined) return
      setState({ kind: 'opening' })
      void follow(attachment, sessionId)
    },
    drop,
    end() {
      remove()
      drop()
    },
  }
}

function endText({
  exitCode,
  signal,
  reason,
}: Pick<TerminalClosed, 'exitCode' | 'signal' | 'reason'>): string {
  if (reason !== null) return `The session has ended: ${reason}`
  if (signal !== null) return `The shell was ended by ${signal}`
  return exitCode === null ? 'The session has ended' : `The shell has ended with exit code ${exitCode}`
}

/** One WebSocket of a session (contract §7). A browser tells nobody of one whose path is dead: the server is asked. */
function openTerminalSocket(path: string, ticket: string, after: number | undefined): TerminalSocket {
  const socket = new WebSocket(addressOf(path, ticket, after), terminalSubprotocol)
  let heardAt = performance.now()
  let typedAt = 0
  let isEnded = false
  let ended: (code: number, reason: string) => void = () => undefined
  const check = setInterval(() => void checkAlive(), checkInterval)

  async function checkAlive(): Promise<void> {
    const now = performance.now()
    const isSuspicious = now - heardAt > longestSilence || (typedAt > heardAt && now - typedAt > longestEcho)
    if (!isSuspicious || isEnded) return
    if (await isReachable()) {
      heardAt = performance.now()
      typedAt = 0
    } else end(1006, '')
  }
  function end(code: number, reason: string): void {
    if (isEnded) return
    isEnded = true
    clearInterval(check)
    socket.close()
    ended(code, reason)
  }
  return {
    get isOpen() {
      return !isEnded && socket.readyState === WebSocket.OPEN
    },
    // Nobody can be kept from typing or pasting into a page.
    bufferedAmount: 0,
    send(frame, sent) {
      socket.send(frame)
      if (sent !== undefined) typedAt = performance.now()
    },
    close: (code, reason) => socket.close(code === undefined || code >= 3000 ? code : 1000, reason),
    terminate: () => end(1006, ''),
    listen({ message, closed }) {
      ended = closed
      socket.addEventListener('message', ({ data }) => {
        heardAt = performance.now()
        if (!isEnded) message(String(data))
      })
      socket.addEventListener('close', ({ code, reason }) => end(code, reason))
    },
  }
}

/** `path` as the server gives it, relative to its base URL; the address bar and the history never see the ticket. */
function addressOf(path: string, ticket: string, after: number | undefined): string {
  const url = new URL(path.replace(/^\//, ''), document.baseURI)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  url.hash = ''
  url.searchParams.set('ticket', ticket)
  if (after !== undefined) url.searchParams.set('after', String(after))
  return url.href
}

/** Whether the server can be reached: a browser tells nobody of a WebSocket whose path is dead. All tabs ask once. */
function isReachable(): Promise<boolean> {
  return (asking ??= askHealth())
}

let asking: Promise<boolean> | undefined

async function askHealth(): Promise<boolean> {
  try {
    await fetch('api/health', { cache: 'no-store', signal: AbortSignal.timeout(healthPatience) })
    return true
  } catch {
    return false
  } finally {
    asking = undefined
  }
}
