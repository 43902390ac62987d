import type { Clock } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import type { LocalFacts } from '../storage/local-facts.ts'
import type { AgentLink, Links, Member, Ownership, Relay } from '../storage/ports/cluster.ts'
import type { Hints } from '../storage/ports/hints.ts'
import type { Keys } from '../storage/ports/keys.ts'
import type { Store } from '../storage/ports/store.ts'
import type { Recordings } from '../storage/ports/terminals.ts'
import type { RecordingBound, RecordingOptions } from './recording.ts'
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

interface SavingDependencies {
  store: Store
  facts: LocalFacts
  member: Member
  ownership: Pick<Ownership, 'owner' | 'release'>
  log: Log
}

/** Writes changes of terminals to the store, retrying until they are stored. */
export class Saving {
  readonly #deps: SavingDependencies
  readonly #unsaved = new Set<LiveTerminal>()
  readonly #ending = new Map<string, Promise<void>>()
  /** Terminals that ended, but not yet in the store. */
  readonly #closing = new Map<string, LiveTerminal>()

  constructor(deps: SavingDependencies) {
    this.#deps = deps
  }

  changed(terminal: LiveTerminal): void {
    this.#unsaved.add(terminal)
  }

  forget(terminal: LiveTerminal): void {
    this.#unsaved.delete(terminal)
  }

  ended(terminal: LiveTerminal): void {
    const { id } = terminal.record
    this.#ending.set(
      id,
      this.#finish(terminal).finally(() => this.#ending.delete(id)),
    )
    this.#closing.set(id, terminal)
  }

  closing(id: string): LiveTerminal | undefined {
    return this.#closing.get(id)
  }

  /** Resolves when the end of a terminal is durable, or its write failed. */
  async settled(id: string): Promise<void> {
    await this.#ending.get(id)
  }

  async sweep(): Promise<void> {
    for (const terminal of this.#unsaved)
      if (!this.#ending.has(terminal.record.id)) await this.#save(terminal)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#ending.values())
    for (const terminal of this.#unsaved) await this.#save(terminal)
  }

  async #finish(terminal: LiveTerminal): Promise<void> {
    const { facts, log } = this.#deps
    const { recording } = terminal
    if (await this.#isElsewhere(terminal)) return
    await recording
      ?.end()
      .catch((error: unknown) => log.warn({ err: error }, 'a recording could not be ended'))
    terminal.record = { ...terminal.record, recordingBytes: recording?.bytes ?? 0 }
    facts.publish('terminal', { kind: 'ended', record: terminal.record })
    this.#unsaved.add(terminal)
    await this.#save(terminal)
  }

  async #save(terminal: LiveTerminal): Promise<void> {
    const { store, log } = this.#deps
    const { record } = terminal
    if (await this.#isElsewhere(terminal)) return
    try {
      await store.transact(async (tx) => {
        // Keep an end stored by another server while this one was disconnected.
        if ((await tx.get('terminals', record.id))?.status !== 'CLOSED') tx.put('terminals', record)
      })
    } catch (error) {
      log.warn({ err: error, sessionId: record.id }, 'a terminal session could not be stored')
      return
    }
    if (terminal.record === record) this.#unsaved.delete(terminal)
    // Its end may have come while an earlier change was written: the agent keeps the exit code until that is stored.
    if (record.status !== 'CLOSED') return
    await this.#closed(record.id)
    if (terminal.hasLeftHost) terminal.host.link?.send('TERMINAL_CLOSE', { sessionId: record.id })
  }

  /** Whether another server took the session over; then nothing is saved here. */
  async #isElsewhere({ record: { id } }: LiveTerminal): Promise<boolean> {
    const { ownership, member, log } = this.#deps
    // If ownership is unknown, the save fails too and is retried.
    const owner = await ownership.owner(id).catch(() => null)
    if (owner === null || owner.epoch === member.epoch) return false
    log.info({ sessionId: id, server: owner.name }, 'a terminal session continues on another server')
    for (const terminal of this.#unsaved) if (terminal.record.id === id) this.#unsaved.delete(terminal)
    this.#closing.delete(id)
    return true
  }

  async #closed(id: string): Promise<void> {
    this.#closing.delete(id)
    const { ownership, member, log } = this.#deps
    await ownership
      .release(member, [id])
      .catch((error: unknown) => log.warn({ err: error, sessionId: id }, 'a session could not be released'))
  }
}
