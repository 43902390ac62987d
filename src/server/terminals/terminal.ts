import { RsmError } from '../../core/errors.ts'
import { closeCodes } from '../../core/protocol/close-codes.ts'
import type { TerminalClosed } from '../../core/protocol/messages.ts'
import { reattachWindow, type TerminalNotice, type TypedCount } from '../../core/terminals/terminal.ts'
import type { Clock } from '../../disk/clock.ts'
import type { AgentLink } from '../storage/ports/cluster.ts'
import type { Attachment, TerminalClient } from '../storage/ports/terminals.ts'
import type { TerminalRecord } from '../storage/records/terminal.ts'
import { HostEnd, sizeOf } from './host-end.ts'
import type { Recording } from './recording.ts'
import { Progress, Replay } from './replay.ts'
import { ended, isCutShort, overdue, saysOf, type TerminalEnd } from './terminal-end.ts'
import { ClientStream, greet, Watchers } from './watchers.ts'

/**
 * Bytes kept of output recorded by an earlier process. Covers everything an agent sends before it pauses,
 * which clients may have missed, even if each byte is escaped as six.
 */
const recalledBytes = 2 * 1024 * 1024

const recordingFull = ended('its recording is full, and unrecorded sessions are not allowed')

export interface TerminalEvents {
  /** Sends a signed TERMINAL_OPEN. */
  reopen(terminal: LiveTerminal, link: AgentLink, after: number): void
  /** Called once. */
  ended(terminal: LiveTerminal, end: TerminalEnd): void
  /** It ended, and its client knows so or will not return. */
  done(terminal: LiveTerminal): void
  watched(terminal: LiveTerminal, client: TerminalClient): void
  resized(terminal: LiveTerminal): void
}

/** A live terminal: moves output from the agent to recording and clients, and tracks who is disconnected. */
export class LiveTerminal {
  record: TerminalRecord
  readonly replay: Replay = new Replay()
  readonly watchers: Watchers
  readonly host: HostEnd
  recording: Recording | null = null
  end: TerminalEnd | null = null
  hasLeftHost = false
  /** Monotonic milliseconds; 0 before any input. */
  lastInput = 0
  /** Monotonic milliseconds of the last data in either direction. */
  lastActivity: number
  #stream: ClientStream | null = null
  #clientAwaySince: number | null
  #endedAt = 0
  readonly #progress: Progress
  readonly #startedAt: number
  readonly #clock: Clock
  readonly #events: TerminalEvents

  /** `link` is null for a terminal that an earlier process opened. */
  constructor(record: TerminalRecord, link: AgentLink | null, clock: Clock, events: TerminalEvents) {
    const now = clock.monotonic()
    this.record = record
    this.lastActivity = now
    this.#clientAwaySince = now
    this.#progress = new Progress(this.replay, link !== null)
    this.#clock = clock
    this.#events = events
    this.#startedAt = now - (clock.now() - Date.parse(record.startedAt))
    this.watchers = new Watchers(this.replay, ({ caller }) =>
      this.#notice('unwatched', `${caller.username} no longer reads along`),
    )
    this.host = new HostEnd(record, link, now, () => this.#stream?.client ?? null)
  }

  readonly #seconds = () => Math.max(0, (this.#clock.monotonic() - this.#startedAt) / 1000)

  /** `given` is the sequence, if the agent counts; `text` is `data` as JSON, if it came as JSON. */
  output(data: string, given: number | undefined, text?: Uint8Array): void {
    const { replay } = this
    const sequence = given ?? replay.last + 1
    this.lastActivity = this.#clock.monotonic()
    this.taken()
    const arrived = this.#progress.arrived(sequence)
    if (arrived === 'again') return this.#acknowledge()
    if (arrived === 'gap')
      return this.finish(ended('output of the session was lost between its host and the server'))
    const json = text ?? Buffer.from(JSON.stringify(data))
    this.recording?.output(this.#seconds(), sequence, json)
    if (this.recording?.endsSession) return this.finish(recordingFull)
    replay.push(sequence, json, data.length)
    this.#pump()
    this.#acknowledge()
    if (replay.isExcessive) this.finish(ended('the agent of the host sends more than was asked for'))
  }

  recall(sequence: number, json: string): void {
    this.replay.push(sequence, Buffer.from(json), (JSON.parse(json) as string).length)
    this.replay.trim(sequence, recalledBytes)
  }

  /** More of the recording is stored, or a client has shown more. */
  moved(): void {
    if (this.#stream) this.#progress.advance(this.#stream.delivered)
    this.#pump()
    this.#acknowledge()
  }

  #pump(): void {
    this.#stream?.pump(this.replay)
    this.watchers.pump()
    const stream = this.#stream
    if (!this.end || !stream || stream.cursor < this.replay.last) return
    if (!stream.client.acknowledges || isCutShort(this.end)) return this.#closeClients(1000)
    // The socket may be dead, so wait for the client's acknowledgement.
    this.#sendClosed(stream)
    if (stream.delivered >= this.replay.last) stream.client.close(1000, saysOf(this.end))
  }

  #acknowledge(): void {
    const progress = this.#progress
    const upTo = progress.settled(this.recording?.written ?? Number.POSITIVE_INFINITY)
    if (upTo <= progress.acknowledged || this.end) return
    if (this.host.acknowledge(this.record.id, upTo)) progress.acknowledged = upTo
  }

  linked(link: AgentLink): void {
    const wasAway = this.host.awaySince !== null
    this.#progress.acknowledged = -1
    this.#progress.bound(this.host.linked(link, this.record))
    this.#stream?.bound(this.#progress.newest)
    // Ask again for output that is in memory only, because it would be lost with this process.
    const recorded = this.recording?.written ?? Number.POSITIVE_INFINITY
    this.#events.reopen(this, link, Math.min(this.replay.last, recorded))
    if (wasAway) this.#notice('host-back', `${this.record.hostname} is connected again`)
  }

  /**
   * The agent accepted the TERMINAL_OPEN and takes input over this link. Returns false for an invalid key.
   */
  taken(agentKey?: string, typed?: TypedCount): boolean {
    try {
      if (this.host.take(this.record, agentKey, typed)) this.#acknowledge()
      return true
    } catch {
      return false
    }
  }

  unlinked(): void {
    this.host.unlinked(this.#clock.monotonic())
    if (this.end) return
    const seconds = reattachWindow / 1000
    this.#notice('host-away', `${this.record.hostname} has lost its link; waiting ${seconds} s for it`)
  }

  /** Throws `invalid` for an `after` that no client can have been sent. */
  expect(after: number | null): void {
    const { newest } = this.#progress
    if (after !== null && after > newest)
      throw new RsmError('invalid', `after is ${after}, and the newest output is ${newest}`)
  }

  /** `after` is null for a client without output, which gets everything kept. */
  attach(client: TerminalClient, after: number | null): Attachment {
    const previous = this.#stream
    this.#clientAwaySince = null
    // A client that does not acknowledge misses only output that was not written to any client yet.
    const { newest, delivered } = this.#progress
    const from = Math.min(newest, after ?? (client.acknowledges ? -1 : delivered))
    const stream = new ClientStream(client, from, false, () => {
      if (this.#stream === stream) this.moved()
    })
    this.#stream = stream
    previous?.client.close(closeCodes.replaced, 'another client has taken its place')
    if (previous) this.host.input.clientGone()
    greet(client, this, { from, watching: false })
    this.moved()
    return this.#attachment(stream)
  }

  /** Adds a watcher and tells the session's user. */
  watch(client: TerminalClient, after: number | null): Attachment {
    const from = after ?? -1
    const stream = this.watchers.add(client, from)
    if (!stream) throw new RsmError('conflict', 'Too many clients read along at this session')
    greet(client, this, { from, watching: true })
    this.#notice('watched', `${client.caller.username} reads along`)
    this.#events.watched(this, client)
    this.#pump()
    return this.watchers.attachment(stream)
  }

  #attachment(stream: ClientStream): Attachment {
    const whileAttached = (act: () => void) => {
      if (this.#stream === stream && !this.end) act()
    }
    return {
      input: (data, frameId, place) =>
        whileAttached(() => {
          this.lastInput = this.#clock.monotonic()
          this.lastActivity = this.lastInput
          this.host.input.push(data, frameId, place)
        }),
      resize: (cols, rows) => whileAttached(() => this.#resize(cols, rows)),
      acknowledge: (sequence) => {
        if (this.#stream === stream) stream.acknowledge(sequence)
      },
      leave: () => whileAttached(() => this.finish(ended('its user left'))),
      gone: () => {
        if (this.#stream !== stream) return
        this.#stream = null
        this.host.input.clientGone()
        this.#clientAwaySince = this.#clock.monotonic()
      },
      parted: () => {
        if (this.end && stream.isNotified && this.#stream === null) this.#closeClients(1000)
      },
    }
  }

  #resize(cols: number, rows: number): void {
    if (sizeOf({ cols, rows }) === sizeOf(this.record)) return
    this.record = { ...this.record, cols, rows }
    const { id: sessionId } = this.record
    this.host.resize(this.record)
    this.recording?.resize(this.#seconds(), cols, rows)
    if (this.recording?.endsSession) return this.finish(recordingFull)
    this.watchers.broadcast('TERMINAL_RESIZE', { sessionId, cols, rows })
    this.#events.resized(this)
  }

  warn(message: string): void {
    this.#notice('recording-full', message)
  }

  #notice(kind: TerminalNotice['kind'], message: string): void {
    this.#stream?.client.notify({ sessionId: this.record.id, kind, message })
  }

  /** Why it must end now, or null. `idleLimit` in milliseconds, 0 for none. */
  overdue(now: number, idleLimit: number): TerminalEnd | null {
    if (this.end) return null
    const [client, agent] = [this.#clientAwaySince, this.host.awaySince]
    return overdue({ client, agent, active: this.lastActivity }, now, idleLimit)
  }

  /** Gives up an ended terminal whose client did not return or did not read everything in time. */
  forget(now: number): void {
    if (now - Math.max(this.#endedAt, this.#clientAwaySince ?? 0) > reattachWindow) this.#closeClients(1000)
  }

  /**
   * Ends the terminal. A client that may return or is still reading learns so once it has all output; with `code`
   * at once, and its socket closes with that code.
   */
  finish(end: TerminalEnd, code?: number): void {
    if (this.end) return
    this.end = end
    this.#endedAt = this.#clock.monotonic()
    this.#events.ended(this, end)
    if (code !== undefined) this.#closeClients(code)
    else if (this.#stream === null && isCutShort(end)) this.#events.done(this)
    else this.#pump()
  }

  /** Marks a terminal that ended on another server; its client learns so once it has all output. */
  hadEnded(end: TerminalEnd): void {
    this.end = end
    this.#endedAt = this.#clock.monotonic()
  }

  #closeClients(code: number): void {
    const stream = this.#stream
    this.#stream = null
    if (stream) this.#sendClosed(stream)
    stream?.client.close(code, saysOf(this.end))
    this.watchers.broadcast('TERMINAL_CLOSED', this.#closed)
    this.watchers.close(1000, saysOf(this.end))
    this.#events.done(this)
  }

  #sendClosed(stream: ClientStream): void {
    if (stream.isNotified) return
    stream.isNotified = true
    stream.client.send('TERMINAL_CLOSED', this.#closed)
  }

  get #closed(): TerminalClosed {
    return { sessionId: this.record.id, ...(this.end ?? ended('the session ended')) }
  }

  /** Closes the sockets of its clients, which reconnect: the terminal continues without this server. */
  suspend(why: string): void {
    const client = this.#stream?.client
    this.#stream = null
    client?.close(closeCodes.shuttingDown, why)
    this.watchers.close(closeCodes.shuttingDown, why)
  }
}
