import type { AgentHello, Payloads, TerminalOpen } from '../../core/protocol/messages.ts'
import type { TypedInput } from '../../core/terminals/terminal.ts'
import type { RunnerOptions } from '../executions/runner-options.ts'
import { PastTerminals, Undecided } from './admission.ts'
import type { Terminal, TerminalOptions } from './terminal.ts'

const maxTerminals = 64
/** Milliseconds that a terminal waits for a link to resume it; the server waits 60 s. */
const longestAbsence = 75_000
/** Milliseconds for which the end of a terminal is reported over each new link. */
const endKept = 60_000

/** Placeholder for the input id of older servers, which do not count input. */
const unnumbered = '-'

type Outgoing = 'TERMINAL_OPENED' | 'TERMINAL_OUTPUT' | 'TERMINAL_CLOSED' | 'ERROR'

export interface TerminalSending {
  send<T extends Outgoing>(type: T, payload: Payloads[T]): void
  /** False while the socket is full; `Terminals.sendRound` is called when it has room again. */
  hasRoom(): boolean
}

export interface TerminalsOptions
  extends Omit<TerminalOptions, 'host'>,
    Pick<RunnerOptions, 'clock' | 'verify' | 'distrusted' | 'hearServerTime'> {
  /** Reason why there are no terminals here; null if there are. */
  readonly lack: string | null
}

interface TerminalsEvents {
  counted(): void
}

/** Loads modules on demand, to save memory in agents without terminals. */
async function loadTerminals(directory: string) {
  const [{ Terminal }, { InputGuard }, { PtyHost }] = await Promise.all([
    import('./terminal.ts'),
    import('./input-guard.ts'),
    import('./pty-host.ts'),
  ])
  const guardOf = ({ sessionId, inputKey }: TerminalOpen) =>
    inputKey === undefined ? null : new InputGuard(sessionId, inputKey)
  return { Terminal, guardOf, host: new PtyHost(directory) }
}
type Loaded = Awaited<ReturnType<typeof loadTerminals>>

/** Terminals of this host: only its server opens, resumes or types into them (contract §6, §7). */
export class Terminals {
  readonly #options: TerminalsOptions
  readonly #terminals = new Map<string, Terminal>()
  #loaded: Loaded | null = null
  readonly #past = new PastTerminals()
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

  get isAvailable(): boolean {
    return this.#options.lack === null
  }

  get size(): number {
    return [...this.#terminals.values()].filter(({ closed }) => closed === null).length
  }

  /** Whether no terminal is open and all ends are reported. */
  get isIdle(): boolean {
    return [...this.#terminals.values()].every(({ isCloseSent }) => isCloseSent)
  }

  /** A new link: lists all terminals; each waits for its TERMINAL_OPEN. */
  begin(sending: TerminalSending): NonNullable<AgentHello['terminals']> {
    this.#sending = sending
    return [...this.#terminals.values()].map(({ sessionId, frames }) => ({
      sessionId,
      lastSequence: frames.last,
    }))
  }

  end(): void {
    this.#sending = null
    for (const terminal of this.#terminals.values()) {
      if (!terminal.isAttached) continue
      terminal.isAttached = false
      if (terminal.closed === null) this.#awaitLink(terminal)
    }
  }

  /** Never rejects: on failure it refuses, with a reason. */
  async open(request: TerminalOpen): Promise<void> {
    this.#undecided.begin(request)
    try {
      await this.#decide(request)
    } catch (error) {
      // Its modules may be missing if another version replaced the agent in place.
      const why = error instanceof Error ? error.message : String(error)
      this.#options.log('ERROR', 'could not open a terminal', { sessionId: request.sessionId, why })
      this.#refuse(request.sessionId, `the agent of this host cannot open a terminal: ${why}`)
    } finally {
      this.#undecided.end(request)
    }
  }

  async #decide(request: TerminalOpen, isTimeKnown = false): Promise<void> {
    const { lack, verify, distrusted, hearServerTime } = this.#options
    const { sessionId } = request
    if (lack !== null) return this.#refuse(sessionId, `this agent cannot open terminals: ${lack}`)
    // Load first, so that nothing comes between the checks and their consequences.
    if (this.#loaded === null) {
      const loaded = await loadTerminals(this.#options.directory)
      this.#loaded ??= loaded
    }
    const doubt = verify('TERMINAL_OPEN', request)
    if (doubt !== null) {
      // As for scripts: the server's clock may have changed since its last answer (reliability F13).
      if (doubt.isTooOld && !isTimeKnown) {
        this.#undecided.startInputQueue(sessionId)
        if (await hearServerTime()) return this.#decide(request, true)
      }
      this.#undecided.takeInput(sessionId)
      distrusted(`TERMINAL_OPEN ${sessionId}`, doubt.reason)
      return this.#refuse(sessionId, doubt.reason)
    }
    const known = this.#terminals.get(sessionId)
    if (known) return this.#takeUp(known, request, this.#loaded)
    this.#undecided.takeInput(sessionId)
    if (request.after !== undefined)
      return this.#refuse(sessionId, 'the session is gone: the agent of this host has restarted since')
    if (this.#past.has(sessionId)) return this.#refuse(sessionId, 'the session has ended')
    if (this.#isStopped) return this.#refuse(sessionId, 'the agent of this host is stopping')
    if (this.size >= maxTerminals)
      return this.#refuse(sessionId, `this host already has ${maxTerminals} open sessions, the limit`)
    return this.#begin(request, this.#loaded)
  }

  input(input: Payloads['TERMINAL_INPUT']): void {
    const { sessionId } = input
    const terminal = this.#terminals.get(sessionId)
    if (terminal?.isAttached) return this.#typed(terminal, input)
    if (this.#undecided.queueInput(input)) return
    // A link that has not proven to be the server's must not type into a live shell.
    if (terminal && terminal.closed === null)
      this.#options.distrusted(
        `TERMINAL_INPUT ${sessionId}`,
        'signature missing: this link has not resumed the session',
      )
  }

  resize(size: Payloads['TERMINAL_RESIZE']): void {
    const terminal = this.#terminals.get(size.sessionId)
    if (terminal?.isAttached && this.#isMeant(terminal, 'TERMINAL_RESIZE', size))
      terminal.resize(size.cols, size.rows)
  }

  #typed(terminal: Terminal, input: Payloads['TERMINAL_INPUT']): void {
    if (!this.#isMeant(terminal, 'TERMINAL_INPUT', input)) return
    const fresh = terminal.typed.take(input)
    if (fresh !== null) terminal.write(fresh)
    else this.#endAtGap(terminal, 'TERMINAL_INPUT')
  }

  /** Whether the server sent this and nothing before it is missing; other input is dropped and reported. */
  #isMeant<T extends TypedInput>(terminal: Terminal, type: T, payload: Payloads[T]): boolean {
    const { guard, sessionId } = terminal
    if (guard === null || terminal.closed !== null) return true
    const judgement = guard.judge(type, payload)
    if (judgement === 'next') return true
    const what = `${type} ${sessionId}`
    const { distrusted, clock } = this.#options
    if (judgement === 'gap') {
      this.#endAtGap(terminal, type)
      return false
    }
    const reason =
      judgement === 'again'
        ? 'signature is of input received before'
        : 'signature missing or not from the server'
    if (terminal.refusals.begins(clock.monotonic())) {
      distrusted(what, reason)
      this.#sending?.send('ERROR', { code: 403, message: `${reason} (${what})`, refId: null, sessionId })
    }
    return false
  }

  #endAtGap(terminal: Terminal, type: TypedInput): void {
    const reason =
      'signature is valid, but earlier input is missing: something between server and host drops it'
    this.#options.distrusted(`${type} ${terminal.sessionId}`, reason)
    terminal.end(reason)
  }

  acknowledged({ sessionId, sequence }: Payloads['TERMINAL_ACK']): void {
    const terminal = this.#terminals.get(sessionId)
    if (terminal?.isAttached) terminal.acknowledged(sequence)
  }

  close({ sessionId }: Payloads['TERMINAL_CLOSE']): void {
    const terminal = this.#terminals.get(sessionId)
    if (terminal?.closed && terminal.isCloseSent) return this.#forget(terminal)
    // Closing requires no signature, and its sender gets the result.
    if (terminal && !terminal.isAttached) terminal.attach(terminal.frames.last)
    terminal?.end('the session was closed')
    // A terminal still being checked ends before it begins.
    if (!terminal && this.#undecided.asksFor(sessionId)) this.#remember(sessionId)
  }

  /** Sends one frame of each terminal, so that no flood delays the others; false if none had any. */
  sendRound(): boolean {
    let wasSent = false
    for (const terminal of this.#terminals.values()) if (this.#sendNext(terminal)) wasSent = true
    return wasSent
  }

  /** Ends all terminals; resolves when their processes have ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    for (const terminal of this.#terminals.values()) terminal.end('the agent of this host was stopped')
    if (this.size > 0)
      await new Promise<void>((resolve) => {
        this.#whenEmpty = resolve
      })
    this.#loaded?.host.stop()
    for (const terminal of this.#terminals.values()) terminal.cancelTimer()
  }

  #refuse(sessionId: string, reason: string): void {
    this.#sending?.send('TERMINAL_CLOSED', { sessionId, exitCode: null, signal: null, reason })
  }

  async #begin(request: TerminalOpen, loaded: Loaded): Promise<void> {
    const { Terminal, guardOf, host } = loaded
    const { sessionId } = request
    const terminal = new Terminal(
      request,
      { ...this.#options, host },
      {
        opened: () => this.#opened(terminal),
        changed: () => this.#pump(terminal),
        dropped: () => this.#dropped(terminal),
        ended: () => this.#ended(terminal),
      },
    )
    terminal.guard = guardOf(request)
    terminal.isAttached = this.#sending !== null
    this.#terminals.set(sessionId, terminal)
    this.#events.counted()
    await terminal.open(request)
  }

  #opened(terminal: Terminal): void {
    if (terminal.isAttached) this.#reportOpened(terminal)
    else this.#awaitLink(terminal)
  }

  #reportOpened({ sessionId, guard, typed: { by, count } }: Terminal): void {
    const typed = { by: by ?? unnumbered, count }
    this.#sending?.send('TERMINAL_OPENED', {
      sessionId,
      ...(guard ? { inputKey: guard.publicKey } : {}),
      typed,
    })
  }

  #takeUp(terminal: Terminal, request: TerminalOpen, { guardOf }: Loaded): void {
    const { sessionId, cols, rows, after = -1 } = request
    // A repeated request over the same link, which an attacker can replay, must not reset the counter.
    if (!terminal.isAttached || terminal.guard?.serverKey !== request.inputKey)
      terminal.guard = guardOf(request)
    terminal.attach(after)
    if (terminal.closed === null) {
      terminal.cancelTimer()
      terminal.resize(cols, rows)
      if (terminal.isOpen) this.#reportOpened(terminal)
    }
    for (const input of this.#undecided.takeInput(sessionId)) this.#typed(terminal, input)
    this.#pump(terminal)
  }

  #dropped({ sessionId, isAttached, drops }: Terminal): void {
    if (!drops.begins(this.#options.clock.monotonic())) return
    const message = `session ${sessionId}: its program does not read; input is dropped`
    this.#options.log('WARN', 'input is dropped: the program does not read', { sessionId })
    if (isAttached) this.#sending?.send('ERROR', { code: 413, message, refId: null, sessionId })
  }

  #pump(terminal: Terminal): void {
    while (this.#sendNext(terminal));
  }

  #sendNext(terminal: Terminal): boolean {
    const sending = this.#sending
    if (sending === null || !terminal.isAttached || terminal.isCloseSent || !sending.hasRoom()) return false
    const output = terminal.next()
    if (output) sending.send('TERMINAL_OUTPUT', output)
    else if (terminal.closed) {
      terminal.isCloseSent = true
      sending.send('TERMINAL_CLOSED', terminal.closed)
    }
    return output !== null
  }

  /** Ends a terminal that no link resumes. */
  #awaitLink(terminal: Terminal): void {
    this.#after(terminal, longestAbsence, () => terminal.end('the server did not resume the session'))
  }

  #ended(terminal: Terminal): void {
    this.#remember(terminal.sessionId)
    this.#after(terminal, endKept, () => this.#forget(terminal))
    this.#pump(terminal)
    this.#events.counted()
    if (this.size === 0) this.#whenEmpty?.()
  }

  #remember(sessionId: string): void {
    this.#past.add(sessionId, this.#options.clock.monotonic())
  }

  #forget(terminal: Terminal): void {
    terminal.cancelTimer()
    this.#terminals.delete(terminal.sessionId)
  }

  #after(terminal: Terminal, milliseconds: number, run: () => void): void {
    terminal.cancelTimer()
    terminal.cancelTimer = this.#options.clock.after(milliseconds, run)
  }
}
