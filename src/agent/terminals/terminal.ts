import { mkdirSync, rmSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import type { TerminalClosed, TerminalOpen, TerminalOutput } from '../../core/protocol/messages.ts'
import { Burst } from '../../core/rates.ts'
import { TypedCounter } from '../../core/terminals/terminal.ts'
import type { RunnerOptions } from '../executions/runner-options.ts'
import { isPopulated } from '../processes/cgroups.ts'
import { ownProcesses } from '../processes/launch.ts'
import { startTimeOf, tagOf } from '../processes/machine.ts'
import { originOf } from '../processes/origin.ts'
import { remnantText } from '../processes/survivors.ts'
import type { Remnant } from '../processes/tree.ts'
import { Frames } from './frames.ts'
import type { InputGuard } from './input-guard.ts'
import { type Cleanup, note, removeGroups } from './leftovers.ts'
import type { PtyHost } from './pty-host.ts'
import { login, prepareShell } from './shell.ts'

/** What terminals need of the agent; `directory` holds a folder for each. */
export interface TerminalOptions
  extends Pick<
    RunnerOptions,
    | 'directory'
    | 'journal'
    | 'machine'
    | 'containment'
    | 'own'
    | 'runAs'
    | 'allowRunAs'
    | 'sandbox'
    | 'limiter'
    | 'ceiling'
    | 'log'
  > {
  readonly host: PtyHost
}

interface TerminalEvents {
  /** Its program runs. */
  opened(): void
  /** There is something to send. */
  changed(): void
  /** Input that no program reads has found no place. */
  dropped(): void
  /** All of its processes are gone, and all output is known. */
  ended(): void
}

type End = Omit<TerminalClosed, 'sessionId'>

/** How a program ended: by a signal counts as shells have it, as 128 and its number. */
function endOf(exitCode: number, signal: number): End {
  const [name = null] = Object.entries(constants.signals).find(([, number]) => number === signal) ?? []
  return { exitCode: signal > 0 ? 128 + signal : exitCode, signal: signal > 0 ? name : null, reason: null }
}

/** One terminal: a shell on a PTY, all its processes, and its output until the server has it. */
export class Terminal {
  readonly sessionId: string
  readonly frames: Frames = new Frames()
  /** Whether the present link has shown by a signed TERMINAL_OPEN that it may type here. */
  isAttached = false
  /** Whether its program runs, or has run. */
  isOpen = false
  /** Set when it has ended. */
  closed: TerminalClosed | null = null
  isCloseSent = false
  /** Of the present link's TERMINAL_OPEN; null where that had no key, as those of older servers. */
  guard: InputGuard | null = null
  /** Cancels the wait for a link, or for the end to be forgotten. */
  cancelTimer: () => void = () => {}
  /** The input that it was given. */
  readonly typed: TypedCounter = new TypedCounter()
  /** Of input that found no place. */
  readonly drops: Burst = new Burst()
  /** Of input that the server did not send. */
  readonly refusals: Burst = new Burst()
  readonly #options: TerminalOptions
  readonly #events: TerminalEvents
  readonly #directory: string
  #cleanup: Cleanup | null = null
  #ending = false
  #size: { cols: number; rows: number }
  /** Settles when no more output comes. */
  readonly #gone: Promise<void>
  #isGone: () => void = () => {}
  /** Why it ends, where its program did not end by itself. */
  #reason: string | null = null

  constructor({ sessionId, cols, rows }: TerminalOpen, options: TerminalOptions, events: TerminalEvents) {
    this.sessionId = sessionId
    this.#options = options
    this.#events = events
    this.#directory = join(options.directory, sessionId)
    this.#size = { cols, rows }
    this.#gone = new Promise((resolve) => {
      this.#isGone = resolve
    })
  }

  /** Never rejects: what can't be opened is closed, and says why. */
  async open(request: TerminalOpen): Promise<void> {
    const { host } = this.#options
    const { sessionId } = this
    try {
      const user = await login(request, this.#options)
      // Closed meanwhile.
      if (this.#reason !== null) return this.#close({ exitCode: null, signal: null, reason: this.#reason })
      const start = this.#prepare(request, user)
      const { uid } = user.account
      host.open(
        sessionId,
        { ...start, ...this.#size, uid },
        {
          opened: (pid) => this.#opened(pid),
          failed: (reason) => this.#exited({ exitCode: null, signal: null, reason }),
          output: (bytes) => {
            this.frames.add(bytes)
            this.#events.changed()
          },
          dropped: () => this.#events.dropped(),
          exited: (exitCode, signal) => this.#exited(endOf(exitCode, signal)),
        },
      )
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      await this.#ended({ exitCode: null, signal: null, reason })
    }
  }

  write(data: string): void {
    // A channel has no frame for no bytes.
    if (data !== '' && this.isOpen && this.#reason === null) this.#options.host.write(this.sessionId, data)
  }

  resize(cols: number, rows: number): void {
    if (cols === this.#size.cols && rows === this.#size.rows) return
    this.#size = { cols, rows }
    if (this.isOpen) this.#options.host.resize(this.sessionId, cols, rows)
  }

  acknowledged(sequence: number): void {
    this.#credit(this.frames.acknowledged(sequence))
  }

  /** Present links send all that follows `after` again. */
  attach(after: number): void {
    this.isAttached = true
    this.isCloseSent = false
    this.#credit(this.frames.resume(after))
  }

  /** The next of its output, while there is any. */
  next(): TerminalOutput | null {
    const frame = this.isAttached ? this.frames.take() : undefined
    // With its text last, which the server passes on as it comes (wire-text.ts).
    return frame ? { sessionId: this.sessionId, sequence: frame.sequence, data: frame.data } : null
  }

  /** Hangs up, and ends all of its processes: HUP, TERM, 5 s, KILL. */
  end(reason: string): void {
    if (this.closed || this.#ending || this.#reason !== null) return
    this.#reason = reason
    if (!this.isOpen) return
    this.#options.host.hangUp(this.sessionId)
    void this.#ended({ exitCode: null, signal: null, reason })
  }

  #credit(bytes: number): void {
    if (bytes > 0) this.#options.host.credit(this.sessionId, bytes)
  }

  #prepare(request: TerminalOpen, user: Awaited<ReturnType<typeof login>>) {
    const { containment, limiter, ceiling, journal, machine, sandbox, own } = this.#options
    const { account } = user
    mkdirSync(this.#directory, { recursive: true, mode: 0o711 })
    const tag = tagOf(journal.storeId, this.sessionId)
    const uids = [...new Set([account.uid, own.uid])]
    const origin = originOf(this.#directory, machine)
    const cgroup = containment.create(this.sessionId)
    const tree = { mark: tag, root: null, uids, cgroup, isBoxed: sandbox.mode === 'strict' }
    // Before anything else is made: what fails then leaves no group behind.
    this.#cleanup = { ...origin, tree, groups: [cgroup ?? []].flat() }
    const limited = limiter.create(this.sessionId, ceiling, cgroup, ownProcesses(sandbox))
    const groups = [...new Set([cgroup ?? [], limited.groups].flat())]
    this.#cleanup = { ...origin, tree, groups }
    note(this.#directory, this.#cleanup)
    return prepareShell(request, user, { directory: this.#directory, groups, tag, sandbox })
  }

  #opened(pid: number): void {
    if (this.#cleanup === null) return
    const root = { pid, startTime: startTimeOf(pid) ?? 0 }
    this.#cleanup = { ...this.#cleanup, tree: { ...this.#cleanup.tree, root } }
    this.isOpen = true
    this.#options.log('INFO', 'a terminal was opened', { sessionId: this.sessionId, pid })
    this.#events.opened()
    if (this.#reason === null) return
    const reason = this.#reason
    this.#reason = null
    this.end(reason)
  }

  #exited(end: End): void {
    this.#isGone()
    void this.#ended(end)
  }

  /** Once its program has ended, or is to: what it left in the background ends too. */
  async #ended(end: End): Promise<void> {
    if (this.#ending) return
    this.#ending = true
    const reasons: (string | null)[] = [end.reason]
    try {
      const remnants = await this.#endTree()
      if (this.isOpen && remnants.length === 0) await this.#gone
      reasons.push(remnantText(remnants))
    } catch (error) {
      reasons.push(error instanceof Error ? error.message : String(error))
    }
    this.#clear(() => this.#cleanup && removeGroups(this.#cleanup))
    const reason = reasons.filter((sentence) => sentence !== null).join('; ')
    this.#close({ ...end, reason: reason === '' ? null : reason })
  }

  async #endTree(): Promise<readonly Remnant[]> {
    if (this.#cleanup === null) return []
    const { tree } = this.#cleanup
    // Nothing leaves its cgroup but by being given to another: to look at all processes for it would take longer than the end.
    if (this.#reason === null && tree.cgroup !== null && !isPopulated(tree.cgroup)) return []
    return (await this.#options.containment.end(tree)).remnants
  }

  #close(end: End): void {
    this.frames.finish()
    this.closed = { sessionId: this.sessionId, ...end }
    const { exitCode, signal, reason } = end
    this.#options.log('INFO', 'a terminal was closed', {
      sessionId: this.sessionId,
      exitCode,
      signal,
      reason,
    })
    this.#clear(() => rmSync(this.#directory, { recursive: true, force: true }))
    this.#events.ended()
  }

  /** A disk that takes nothing must not keep the end from being told. */
  #clear(remove: () => void): void {
    try {
      remove()
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      this.#options.log('WARN', 'could not clear up after a terminal', { sessionId: this.sessionId, why })
    }
  }
}
