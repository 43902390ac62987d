import type { Clock } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import type { LocalFacts } from '../storage/local-facts.ts'
import type { AgentLink } from '../storage/ports/agent-link.ts'
import type { Links, Member, Ownership, Relay } from '../storage/ports/cluster.ts'
import type { Hints } from '../storage/ports/hints.ts'
import type { Keys } from '../storage/ports/keys.ts'
import type { Recordings } from '../storage/ports/recordings.ts'
import type { Store } from '../storage/ports/store.ts'
import type { RecordingBound, RecordingOptions } from './recording.ts'
import type { Saving } from './saving.ts'
import type { LiveTerminal, TerminalEvents } from './terminal.ts'

export interface TerminalsDependencies {
  member: Member
  links: Pick<Links, 'holder'>
  /** A session has one owner, as a task has: the server that has it, as long as that lives. */
  ownership: Pick<Ownership, 'claim' | 'release' | 'owner' | 'holds'>
  /** Null if no other server shares the store. */
  relay: Relay | null
  store: Store
  hints: Hints
  facts: LocalFacts
  keys: Keys
  recordings: Recordings
  clock: Clock
  log: Log
  /** Whether terminals are recorded [true]. */
  record?: boolean
  /** Limit of recordings, and what happens to the session then. */
  recordingBound?: RecordingBound
  /** Seconds without data in either direction after which a terminal ends; 0 for none [3600]. */
  idleLimit?: number
}

export interface TerminalsState extends TerminalsDependencies {
  /** Open terminals, and ended ones whose client has not been told. */
  readonly terminals: Map<string, LiveTerminal>
  /** Sessions that are done here, with the monotonic milliseconds of that: their clients do not return. */
  readonly handedOver: Map<string, number>
  /** Sessions being handed over to another server; must not be adopted again here. */
  readonly leaving: Set<string>
  readonly adopting: Map<string, Promise<LiveTerminal | null>>
  /** Callbacks of terminals that their host has not opened yet. */
  readonly openings: Map<string, { resolve: () => void; reject: (error: Error) => void }>
  /** Records of terminals that were never opened, still to be removed from the store. */
  readonly unremoved: Set<string>
  readonly agents: Map<number, AgentLink>
  readonly saving: Saving
  readonly events: TerminalEvents
  recordingOptions(sessionId: string): RecordingOptions
}
