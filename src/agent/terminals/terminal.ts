import { mkdirSync, rmSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import type { TerminalClosed, TerminalOpen, TerminalOutput } from '../../core/protocol/messages.ts'
import { Burst } from '../../core/rates.ts'
import { TypedCounter } from '../../core/terminals/terminal.ts'
import type { RunnerOptions } from '../executions/runner-options.ts'
import { isPopulated } from '../processes/cgroups.ts'
import { remnantText } from '../processes/containment.ts'
import { ownProcesses } from '../processes/launch.ts'
import { originOf, startTimeOf, tagOf } from '../processes/machine.ts'
import type { Remnant } from '../processes/tree.ts'
import { Frames } from './frames.ts'
import type { InputGuard } from './input-guard.ts'
import { type Cleanup, note, removeGroups } from './leftovers.ts'
import type { PtyHost } from './pty-host.ts'
import { login, prepareShell } from './shell.ts'

/** Dependencies of terminals; `directory` has a folder for each. */
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
  opened(): void
  changed(): void
  /** Input was dropped, because the program does not read. */
  dropped(): void
  /** All of its processes have ended, and all output is known. */
  ended(): void
}

type End = Omit<TerminalClosed, 'sessionId'>

/** Result of a program; a signal counts as 128 plus its number, as in shells. */
function endOf(exitCode: number, signal: number): End {
  const [name = null] = Object.entries(constants.signals).find(([, number]) => number === signal) ?? []
  return { exitCode: signal > 0 ? 128 + signal : exitCode, signal: signal > 0 ? name : null, reason: null }
}

/** A terminal: a shell on a PTY, all its processes, and its output until the server has it. */
export class Terminal {
  readonly sessionId: string
  readonly frames: Frames = new Frames()
  /** Whether the current link may type here, after its signed TERMINAL_OPEN. */
  isAttached = false
  isOpen = false
  closed: TerminalClosed | null = null
  isCloseSent = false
  /** Guard of the current link's TERMINAL_OPEN; null without a key, as from older servers. */
  guard: InputGuard | null = null
  /** Cancels the wait for a link, or for the deletion of an ended terminal. */
  cancelTimer: () => void = () => {}
  readonly typed: TypedCounter = new TypedCounter()
  /** Throttles reports of dropped input. */
  readonly drops: Burst = new Burst()
  /** Throttles reports of input that the server did not send. */
  readonly refusals: Burst = new Burst()
  readonly #options: TerminalOptions
  readonly #events: TerminalEvents
  readonly #directory: string
  #cleanup: Cleanup | null = null
  #ending = false
  #size: { cols: number; rows: number }
  /** Resolves after the last output. */
  readonly #gone: Promise<void>
  #isGone: () => void = () => {}
  /** Reason for its end, if its program did not end on its own. */
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

  /** Never rejects: on failure it closes, with a reason. */
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
    // The channel cannot send empty bytes.
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

  /** Attaches to the current link and sends everything after `after` again. */
  attach(after: number): void {
    this.isAttached = true
    this.isCloseSent = false
    this.#credit(this.frames.resume(after))
  }

  next(): TerminalOutput | null {
    const frame = this.isAttached ? this.frames.take() : undefined
    // Keep the text last: the server passes it on unchanged (wire-text.ts).
    return frame ? { sessionId: this.sessionId, sequence: frame.sequence, data: frame.data } : null
  }

  /** Hangs up and ends all of its processes: HUP, TERM, 5 s, KILL. */
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
    // Set before creating more, so that a failure leaves no cgroup behind.
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

  /** Ends its background processes, once its program has ended or must end. */
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
    // Processes leave a cgroup only if moved; scanning all of them for that would take too long.
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

  /** A failing disk must not keep the end from being reported. */
  #clear(remove: () => void): void {
    try {
      remove()
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      this.#options.log('WARN', 'could not clean up after a terminal', { sessionId: this.sessionId, why })
    }
  }
}
