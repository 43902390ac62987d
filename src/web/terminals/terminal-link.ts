import { withKnownColour } from '../../cli/terminal/term.ts'
import { mendable, type RsmError } from '../../core/errors.ts'
import type {
  Terminal,
  TerminalCreate,
  TerminalCreated,
  TerminalTicket,
} from '../../core/protocol/http/terminals.ts'
import type { TerminalClosed } from '../../core/protocol/messages.ts'
import { Burst } from '../../core/rates.ts'
import { type TerminalNotice, terminalSubprotocol } from '../../core/terminals/terminal.ts'
import { Attachment, type TerminalAttached, type TerminalSocket } from '../../net/attachment.ts'
import { call, errorText, send } from '../api.ts'
import { endSession } from '../session.ts'

/** Milliseconds; a server that is unreachable for longer has ended the session anyway. */
const longestAway = 10 * 60_000
const tooMuch = 'The input buffer is full: what you typed is dropped.'

/** Milliseconds for the health check to answer. */
const healthPatience = 8_000

const checkInterval = 2_000
/** Milliseconds of silence before a health check … */
const longestSilence = 20_000
/** … and the same after input. */
const longestEcho = 5_000

export type LinkState =
  | { readonly kind: 'opening' | 'open' | 'away' | 'replaced' }
  /** Final; `word` is the reason. */
  | { readonly kind: 'ended'; readonly word: string }

interface LinkListener {
  state(state: LinkState): void
  /** The host has opened the session; the ID is needed to reattach. */
  named(sessionId: string): void
  /** `isFresh`: all kept output follows, not only what is new. */
  attached(about: TerminalAttached, isFresh: boolean): void
  /** Call `shown` when the text is on the screen: only then is it acknowledged. */
  output(data: string, sequence: number, shown: () => void): void
  resized(cols: number, rows: number): void
  /** `kind` is null if the notice is not from the server. */
  notice(message: string, kind: TerminalNotice['kind'] | null): void
}

/** Session of a tab: a new one, or an existing one. */
type LinkTarget =
  | { readonly create: TerminalCreate }
  | { readonly sessionId: string; readonly watch: boolean }

export interface TerminalLink {
  input(data: string): void
  resize(cols: number, rows: number): void
  /** Takes the session over from another client. */
  takeBack(): void
  /** Disconnects; the server keeps the session open for a while. */
  drop(): void
  end(): void
}

export function createTerminalLink(target: LinkTarget, listener: LinkListener): TerminalLink {
  const isWatching = 'sessionId' in target && target.watch
  const refusals = new Burst()
  let attachment: Attachment | undefined
  let sessionId: string | undefined
  let state: LinkState['kind'] = 'opening'
  let isDropped = false
  /** Input typed before the session exists. */
  let early = ''

  const pathOf = (id: string) => `api/terminals/${encodeURIComponent(id)}`
  const setState = (next: LinkState) => {
    state = next.kind
    if (!isDropped) listener.state(next)
  }
  const finish = (word: string) => setState({ kind: 'ended', word })
  /** Reports once, even if many frames are refused. */
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

  /** Why the session is unavailable: from its record, or else from the refusal. */
  async function howItEnded(id: string, refusal: RsmError): Promise<string> {
    if (mendable(refusal)) return 'The server was unreachable for too long'
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
    // Ignore errors: the session has already ended, or an unreachable server will end it.
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

/** A WebSocket of a session (contract §7). Browsers do not report a dead path, so it polls the server. */
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
    // A page cannot prevent typing or pasting, so there is no backpressure.
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

/** `path` from the server is relative to its base URL; the ticket never appears in address bar or history. */
function addressOf(path: string, ticket: string, after: number | undefined): string {
  const url = new URL(path.replace(/^\//, ''), document.baseURI)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  url.hash = ''
  url.searchParams.set('ticket', ticket)
  if (after !== undefined) url.searchParams.set('after', String(after))
  return url.href
}

/** Health check, because browsers do not report a dead WebSocket path. All tabs share it. */
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
