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
  /** The server whose terminals these are. */
  member: Member
  links: Pick<Links, 'holder'>
  /** A session is owned as a task is: by the server that has it, and by nobody else while that lives. */
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
  /** Whether terminals are recorded; true by default. */
  record?: boolean
  /** How much of a session is recorded, and what happens to it then. */
  recordingBound?: RecordingBound
  /** Seconds without data in either direction after which a terminal ends, 0 for none; 3600 by default. */
  idleLimit?: number
}

/** What the parts of the terminals share. */
export interface TerminalsState extends TerminalsDependencies {
  /** Those that are open, and those whose client has not heard the end. */
  readonly terminals: Map<string, LiveTerminal>
  /** Those that were let go here, with the monotonic milliseconds of that: nobody comes back for them. */
  readonly handedOver: Map<string, number>
  /** Those that are given to another server just now: this one must not take them up again. */
  readonly leaving: Set<string>
  /** Those that are taken up just now. */
  readonly adopting: Map<string, Promise<LiveTerminal | null>>
  /** Those whose host has not opened them yet: how to go on. */
  readonly openings: Map<string, { resolve: () => void; reject: (error: Error) => void }>
  /** Records of terminals that were never opened, and that the store has not let go yet. */
  readonly unremoved: Set<string>
  /** The present link of each host. */
  readonly agents: Map<number, AgentLink>
  readonly saving: Saving
  readonly events: TerminalEvents
  recordingOptions(sessionId: string): RecordingOptions
}
