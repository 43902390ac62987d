import type { IncomingMessage } from 'node:http'
import type { Clock } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import type { Clients } from '../access/client-address.ts'
import type { Credentials } from '../access/credentials.ts'
import type { LocalFacts } from '../storage/local-facts.ts'
import type { Caller } from '../storage/ports/caller.ts'
import type { Links, Member } from '../storage/ports/cluster.ts'
import type { Hints } from '../storage/ports/hints.ts'
import type { Heard } from '../storage/ports/presence.ts'
import type { Store } from '../storage/ports/store.ts'
import type { Engine } from '../tasks/engine.ts'
import type { ServerRelay } from '../terminals/relay/relay.ts'
import type { Terminals, Tickets } from '../terminals/terminals.ts'
import type { TerminalSocket } from './terminal-socket.ts'

export interface WebSocketDependencies {
  member: Member
  links: Links
  /** Between the servers of the store, if it is shared. */
  relay?: ServerRelay | null
  credentials: Credentials
  engine: Pick<Engine, 'linked' | 'unlinked' | 'received' | 'phase' | 'output' | 'complete'>
  terminals: Terminals
  tickets: Tickets
  clients: Clients
  store: Store
  presence: Heard
  hints: Hints
  facts: LocalFacts
  clock: Clock
  log: Log
  /** Seconds without a data frame or an agent's ping before a link is closed (contract §6). */
  wsIdleTimeout: number
  accepting(): boolean
  holdsLease(): boolean
  /** Called for each refused upgrade, before the response is sent; `caller` if known. */
  refused(request: IncomingMessage, caller: Caller | undefined, error: unknown): Promise<void>
  /** Called for client frames that only a hostile client sends. */
  frameRefused(socket: TerminalSocket, message: string): void
}
