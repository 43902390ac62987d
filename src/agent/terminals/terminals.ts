import type { AgentHello, Payloads, TerminalOpen } from '../../core/protocol/messages.ts'
import type { TypedInput } from '../../core/typed-input.ts'
import type { RunnerOptions } from '../executions/runner-options.ts'
import type { InputGuard } from './input-guard.ts'
import { PastSessions } from './past-sessions.ts'
import type { PtyHost } from './pty-host.ts'
import type { Session, SessionOptions } from './session.ts'
import { Undecided } from './undecided.ts'

/** Sessions at once. */
const mostSessions = 64
/** Milliseconds for which a session waits for a link that takes it up: the server waits for 60 s. */
const longestAbsence = 75_000
/** Milliseconds for which the end of a session is told over every new link. */
const endKept = 60_000

type Outgoing = 'TERMINAL_OPENED' | 'TERMINAL_OUTPUT' | 'TERMINAL_CLOSED' | 'ERROR'

/** The way to the server while it stands. */
export interface TerminalSending {
  send<T extends Outgoing>(type: T, payload: Payloads[T]): void
  /** False while too much waits in the socket; `Terminals.turn` is called when there is room again. */
  hasRoom(): boolean
}

export interface TerminalsOptions
  extends Omit<SessionOptions, 'host'>,
    Pick<RunnerOptions, 'clock' | 'verify' | 'distrusted' | 'hearServerTime'> {
  /** Why there is no terminal here, null where there is. */
  readonly lack: string | null
}

interface TerminalsEvents {
  /** The number of sessions has changed. */
  counted(): void
}

interface Loaded {
  readonly Session: typeof Session
  readonly InputGuard: typeof InputGuard
  readonly host: PtyHost
}

/** What an agent that never had a session does not carry. */
async function loadSessions(directory: string): Promise<Loaded> {
  const [{ Session }, { InputGuard }, { PtyHost }] = await Promise.all([
    import('./session.ts'),
    import('./input-guard.ts'),
    import('./pty-host.ts'),
  ])
  return { Session, InputGuard, host: new PtyHost(directory) }
}

function guardOf({ sessionId, inputKey }: TerminalOpen, { InputGuard }: Loaded): InputGuard | null {
  return inputKey === undefined ? null : new InputGuard(sessionId, inputKey)
}

/** The sessions of this host: opened, typed into and taken up only by who signs as its server (contract §6, §7). */
export class Terminals {
  readonly #options: TerminalsOptions
  readonly #sessions = new Map<string, Session>()
  #loaded: Loaded | null = null
  readonly #past = new PastSessions()
  readonly #timers = new Map<string, () => void>()
  readonly #undecided = new Undecided()
  #sending: TerminalSending | null = null
  #isStopped = false
  #whenEmpty: (() => void) | undefined
  #events: TerminalsEvents = { counted() {} }

  constructor(options: TerminalsOptions) {
    this.#options = options
  }

  subscribe(events: TerminalsEvents): void {
    this.#events = events
  }

  /** Whether this host opens any. */
  get isAvailable(): boolean {
    return this.#options.lack === null
  }

  /** Those that run. */
  get size(): number {
    return [...this.#sessions.values()].filter(({ closed }) => closed === null).length
  }

  /** Whether none runs, and no end waits to be told. */
  get isIdle(): boolean {
    return [...this.#sessions.values()].every(({ isCloseSent }) => isCloseSent)
  }

  /** A link stands: names all sessions; each waits for its TERMINAL_OPEN. */
  begin(sending: TerminalSending): NonNullable<AgentHello['terminals']> {
    this.#sending = sending
    return [...this.#sessions.values()].map(({ sessionId, frames }) => ({
      sessionId,
      lastSequence: frames.last,
    }))
  }

  /** The link is gone. */
  end(): void {
    this.#sending = null
    for (const session of this.#sessions.values()) {
      if (!session.isAttached) continue
      session.isAttached = false
      if (session.closed === null) this.#awaitLink(session)
    }
  }

  /** Never rejects: what can't be opened is refused, and says why. */
  async open(request: TerminalOpen): Promise<void> {
    this.#undecided.begin(request)
    try {
      await this.#decide(request)
    } catch (error) {
      // Its modules may be gone: the agent was replaced in place by another version.
      const why = error instanceof Error ? error.message : String(error)
      this.#options.log('ERROR', 'a terminal could not be opened', { sessionId: request.sessionId, why })
      this.#refuse(request.sessionId, `the agent of this host can not open a terminal: ${why}`)
    } finally {
      this.#undecided.end(request)
    }
  }

  async #decide(request: TerminalOpen, isTimeKnown = false): Promise<void> {
    const { lack, verify, distrusted, hearServerTime } = this.#options
    const { sessionId } = request
    if (lack !== null) return this.#refuse(sessionId, `this agent has no terminal facility: ${lack}`)
    // Before anything is judged: from then on nothing comes between that and what follows from it.
    if (this.#loaded === null) {
      const loaded = await loadSessions(this.#options.directory)
      this.#loaded ??= loaded
    }
    const doubt = verify('TERMINAL_OPEN', request)
    if (doubt !== null) {
      // As with scripts: the server's clock may have been set since it was last heard (reliability F13).
      if (doubt.isTooOld && !isTimeKnown) {
        this.#undecided.holdInput(sessionId)
        if (await hearServerTime()) return this.#decide(request, true)
      }
      this.#undecided.takeInput(sessionId)
      distrusted(`TERMINAL_OPEN ${sessionId}`, doubt.reason)
      return this.#refuse(sessionId, doubt.reason)
    }
    const known = this.#sessions.get(sessionId)
    if (known) return this.#takeUp(known, request, this.#loaded)
    this.#undecided.takeInput(sessionId)
    if (request.after !== undefined)
      return this.#refuse(sessionId, 'the session is gone: the agent of this host has ended since')
    if (this.#past.has(sessionId)) return this.#refuse(sessionId, 'the session has ended')
    if (this.#isStopped) return this.#refuse(sessionId, 'the agent of this host is being stopped')
    if (this.size >= mostSessions)
      return this.#refuse(sessionId, `this host has ${mostSessions} sessions open already, its most`)
    return this.#begin(request, this.#loaded)
  }

  input(input: Payloads['TERMINAL_INPUT']): void {
    const { sessionId } = input
    const session = this.#sessions.get(sessionId)
    if (session?.isAttached) return this.#typed(session, input)
    if (this.#undecided.keepInput(input)) return
    // Who has not shown over this link to be the server must not type into a shell that lives.
    if (session && session.closed === null)
      this.#options.distrusted(
        `TERMINAL_INPUT ${sessionId}`,
        'signature missing: this link has not taken the session up',
      )
  }

  resize(size: Payloads['TERMINAL_RESIZE']): void {
    const session = this.#sessions.get(size.sessionId)
    if (session?.isAttached && this.#isMeant(session, 'TERMINAL_RESIZE', size))
      session.resize(size.cols, size.rows)
  }

  #typed(session: Session, input: Payloads['TERMINAL_INPUT']): void {
    if (this.#isMeant(session, 'TERMINAL_INPUT', input)) session.write(input.data)
  }

  /** Whether the server sent this and nothing before it is missing; what it did not send is dropped, and told of. */
  #isMeant<T extends TypedInput>(session: Session, type: T, payload: Payloads[T]): boolean {
    const { guard, sessionId } = session
    if (guard === null || session.closed !== null) return true
    const judgement = guard.judge(type, payload)
    if (judgement === 'next') return true
    const what = `${type} ${sessionId}`
    const { distrusted, clock } = this.#options
    if (judgement === 'gap') {
      const reason =
        'signature holds, but what was typed before never came: something between server and host drops input'
      distrusted(what, reason)
      session.end(reason)
      return false
    }
    const reason =
      judgement === 'again'
        ? 'signature is of input that has come before'
        : 'signature missing or not of the server'
    if (session.refusals.begins(clock.monotonic())) {
      distrusted(what, reason)
      this.#sending?.send('ERROR', { code: 403, message: `${reason} (${what})`, refId: null, sessionId })
    }
    return false
  }

  acknowledged({ sessionId, sequence }: Payloads['TERMINAL_ACK']): void {
    const session = this.#sessions.get(sessionId)
    if (session?.isAttached) session.acknowledged(sequence)
  }

  close({ sessionId }: Payloads['TERMINAL_CLOSE']): void {
    const session = this.#sessions.get(sessionId)
    if (session?.closed && session.isCloseSent) return this.#forget(session)
    // Whoever asks for the end need not show who it is, and hears of it.
    if (session && !session.isAttached) session.attach(session.frames.last)
    session?.end('the session was closed')
    // One that is being decided is over before it has begun.
    if (!session && this.#undecided.asksFor(sessionId)) this.#remember(sessionId)
  }

  /** One frame of each session that has some, so that none of them waits for another's flood; whether there was any. */
  turn(): boolean {
    let wasSent = false
    for (const session of this.#sessions.values()) if (this.#sendNext(session)) wasSent = true
    return wasSent
  }

  /** Ends all sessions; settles when their processes are gone. */
  async stop(): Promise<void> {
    this.#isStopped = true
    for (const session of this.#sessions.values()) session.end('the agent of this host was stopped')
    if (this.size > 0)
      await new Promise<void>((resolve) => {
        this.#whenEmpty = resolve
      })
    this.#loaded?.host.stop()
    for (const cancel of this.#timers.values()) cancel()
  }

  #refuse(sessionId: string, reason: string): void {
    this.#sending?.send('TERMINAL_CLOSED', { sessionId, exitCode: null, signal: null, reason })
  }

  async #begin(request: TerminalOpen, loaded: Loaded): Promise<void> {
    const { Session, host } = loaded
    const { sessionId } = request
    const session = new Session(
      request,
      { ...this.#options, host },
      {
        opened: () => this.#opened(session),
        changed: () => this.#pump(session),
        dropped: () => this.#dropped(session),
        ended: () => this.#ended(session),
      },
    )
    session.guard = guardOf(request, loaded)
    session.isAttached = this.#sending !== null
    this.#sessions.set(sessionId, session)
    this.#events.counted()
    await session.open(request)
  }

  #opened(session: Session): void {
    if (session.isAttached) this.#sayOpened(session)
    else this.#awaitLink(session)
  }

  #sayOpened({ sessionId, guard }: Session): void {
    this.#sending?.send('TERMINAL_OPENED', { sessionId, ...(guard ? { inputKey: guard.publicKey } : {}) })
  }

  #takeUp(session: Session, request: TerminalOpen, loaded: Loaded): void {
    const { sessionId } = session
    const { cols, rows, after = -1 } = request
    // One that comes again over its link, which anyone can repeat, begins no counter anew.
    if (!session.isAttached || session.guard?.serverKey !== request.inputKey)
      session.guard = guardOf(request, loaded)
    session.attach(after)
    if (session.closed === null) {
      this.#cancelTimer(sessionId)
      session.resize(cols, rows)
      if (session.isOpen) this.#sayOpened(session)
    }
    for (const input of this.#undecided.takeInput(sessionId)) this.#typed(session, input)
    this.#pump(session)
  }

  #dropped({ sessionId, isAttached, drops }: Session): void {
    if (!drops.begins(this.#options.clock.monotonic())) return
    const message = `session ${sessionId}: its program reads no input, and what is typed is dropped`
    this.#options.log('WARN', 'input is dropped: its program reads none', { sessionId })
    if (isAttached) this.#sending?.send('ERROR', { code: 413, message, refId: null, sessionId })
  }

  #pump(session: Session): void {
    while (this.#sendNext(session));
  }

  #sendNext(session: Session): boolean {
    const sending = this.#sending
    if (sending === null || !session.isAttached || session.isCloseSent || !sending.hasRoom()) return false
    const output = session.next()
    if (output) sending.send('TERMINAL_OUTPUT', output)
    else if (session.closed) {
      session.isCloseSent = true
      sending.send('TERMINAL_CLOSED', session.closed)
    }
    return output !== null
  }

  /** Who is not taken up again has nobody left. */
  #awaitLink(session: Session): void {
    const { sessionId } = session
    this.#after(sessionId, longestAbsence, () => session.end('the server did not come back to the session'))
  }

  #ended(session: Session): void {
    const { sessionId } = session
    this.#remember(sessionId)
    this.#after(sessionId, endKept, () => this.#forget(session))
    this.#pump(session)
    this.#events.counted()
    if (this.size === 0) this.#whenEmpty?.()
  }

  #remember(sessionId: string): void {
    this.#past.add(sessionId, this.#options.clock.monotonic())
  }

  #forget({ sessionId }: Session): void {
    this.#cancelTimer(sessionId)
    this.#sessions.delete(sessionId)
  }

  #after(sessionId: string, milliseconds: number, run: () => void): void {
    this.#cancelTimer(sessionId)
    const cancel = this.#options.clock.after(milliseconds, run)
    this.#timers.set(sessionId, cancel)
  }

  #cancelTimer(sessionId: string): void {
    this.#timers.get(sessionId)?.()
    this.#timers.delete(sessionId)
  }
}
