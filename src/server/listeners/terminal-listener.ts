import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { RsmError } from '../../core/errors.ts'
import { maxFrameBytes } from '../../core/protocol/bounds.ts'
import { closeCodes } from '../../core/protocol/close-codes.ts'
import { terminalSubprotocol } from '../../core/terminals/terminal.ts'
import { shortened } from '../../core/text/pieces.ts'
import type { Clock } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import type { Clients } from '../access/client-address.ts'
import { stillAllowed } from '../access/credentials.ts'
import { refuseUpgrade } from '../http/answers.ts'
import { type Caller, demand, refusal, type UserCaller } from '../storage/ports/caller.ts'
import type { Store } from '../storage/ports/store.ts'
import type { TerminalRecord } from '../storage/records/terminal.ts'
import type { Terminals, Tickets } from '../terminals/terminals.ts'
import { TerminalSocket } from './terminal-socket.ts'

interface TerminalListenerDependencies {
  store: Store
  terminals: Terminals
  tickets: Tickets
  clients: Clients
  clock: Clock
  log: Log
  accepting(): boolean
  callerOf(request: IncomingMessage): Promise<Caller | undefined>
  refused(request: IncomingMessage, caller: Caller | undefined, error: unknown): Promise<void>
  frameRefused(socket: TerminalSocket, message: string): void
}

interface TerminalListener {
  admit(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>
  tick(): void
  close(): void
}

const pathPrefix = '/ws/terminal/'
/** Characters of an id; longer ones are invalid. */
const longestId = 64

interface Entry {
  caller: UserCaller
  record: TerminalRecord
  after: number | null
  watch: boolean
}

export function createTerminalListener(deps: TerminalListenerDependencies): TerminalListener {
  const { store, terminals, tickets, clock, log } = deps
  const open = new Set<TerminalSocket>()
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: maxFrameBytes,
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(terminalSubprotocol) ? terminalSubprotocol : false),
  })

  /** Identifies the caller by ticket or token. Consumes the ticket in any case. */
  async function identify(
    request: IncomingMessage,
    sessionId: string,
    query: URLSearchParams,
  ): Promise<{ caller: Caller | undefined; watch: boolean | null }> {
    const ticket = query.get('ticket')
    if (ticket === null) return { caller: await deps.callerOf(request), watch: null }
    const admission = await tickets.redeem(ticket)
    if (!admission || admission.sessionId !== sessionId) return { caller: undefined, watch: null }
    return { caller: admission.caller, watch: admission.watch }
  }

  async function authorize(request: IncomingMessage, seen: { caller: Caller | undefined }): Promise<Entry> {
    if (!deps.accepting()) throw new RsmError('unavailable', 'The server is shutting down', { retryAfter: 5 })
    deps.clients.check(request)
    // Taken from the raw URL, because parsing would resolve `..`.
    const [sessionId = '', search] = (request.url ?? '').slice(pathPrefix.length).split(/\?(.*)/s)
    const query = new URLSearchParams(search)
    const { caller, watch: ofTicket } = await identify(request, sessionId, query)
    seen.caller = caller
    if (!caller)
      throw new RsmError('unauthenticated', 'This requires a token, or a valid ticket for this session')
    if (!isOwnOrigin(request, deps.clients.schemeOf(request)))
      throw new RsmError('forbidden', 'Pages of another origin cannot open terminals')
    if (caller.type !== 'user') throw new RsmError('forbidden', 'This requires a user token')
    demand(caller, 'execute')
    // A ticket is valid only as long as the token that requested it.
    await stillAllowed(store, caller, 'execute')
    const watch = ofTicket ?? query.get('watch') === 'true'
    const record = sessionId.length > longestId ? undefined : await store.get('terminals', sessionId)
    const isOwn = record?.userId === caller.id
    if (!record || (!isOwn && caller.role !== 'ADMIN'))
      throw new RsmError('not_found', `no such terminal session: ${shortened(sessionId, longestId)}`)
    if (watch && caller.role !== 'ADMIN') throw refusal(caller, 'watching a session requires the role ADMIN')
    if (!watch && !isOwn)
      throw new RsmError(
        'forbidden',
        `This session belongs to ${record.user}: an ADMIN may watch it (watch=true)`,
      )
    return { caller, record, watch, after: afterOf(query.get('after')) }
  }

  async function admit(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const seen: { caller: Caller | undefined } = { caller: undefined }
    try {
      const entry = await authorize(request, seen)
      const { id } = entry.record
      const site = await terminals.site(id)
      await site.expect(id, entry.after)
      sockets.handleUpgrade(request, socket, head, (ws) => {
        const client = new TerminalSocket(ws, id, {
          caller: entry.caller,
          ip: deps.clients.addressOf(request),
          clock,
          refused: (message) => deps.frameRefused(client, message),
          closed: () => open.delete(client),
        })
        open.add(client)
        client.start(() => site.attach(id, client, entry))
      })
    } catch (error) {
      if (!(error instanceof RsmError)) log.error({ err: error }, 'a terminal could not be attached')
      await deps.refused(request, seen.caller, error).catch(() => undefined)
      refuseUpgrade(socket, error)
    }
  }

  return {
    admit,
    tick() {
      for (const client of open) client.tick()
    },
    close() {
      for (const client of open) client.close(closeCodes.shuttingDown, 'the server is shutting down')
      sockets.close()
    },
  }
}

export const isTerminalPath = (url = ''): boolean => url.startsWith(pathPrefix)

function afterOf(text: string | null): number | null {
  if (text === null) return null
  const after = Number(text)
  if (/^-?\d+$/.test(text) && Number.isSafeInteger(after) && after >= -1) return after
  throw new RsmError('invalid', 'after must be an integer from -1')
}

/**
 * Whether a request comes from no page, or from a page of this server: browsers send `Origin` with WebSockets
 * across origins (RFC 6455 §10.2). `X-Forwarded-Host` covers proxies that do not pass on `Host`; pages can
 * set neither. `scheme`: the browser's scheme, if known.
 */
export function isOwnOrigin(
  { headers }: Pick<IncomingMessage, 'headers'>,
  scheme: 'http' | 'https' | null = null,
): boolean {
  const { origin, host } = headers
  if (origin === undefined) return true
  const forwarded = headers['x-forwarded-host']
  try {
    const { protocol, host: from, origin: bare } = new URL(origin)
    // Browsers send only scheme, host and port; anything else is not a page of this server.
    if (origin !== bare || !(scheme === null ? ['http:', 'https:'] : [`${scheme}:`]).includes(protocol))
      return false
    const hostOf = (name: string) => new URL(`${protocol}//${name}`).host
    return [host, forwarded].some((name) => typeof name === 'string' && hostOf(name) === from)
  } catch {
    return false
  }
}
