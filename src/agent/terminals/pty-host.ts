import { spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { ownProcess, searchPath } from '../processes/programs.ts'
import { agentDescriptor, type FromPtys, PtyChannel, type PtyRequest, type ToPtys } from './pty-channel.ts'

/** Milliseconds for which the idle process is kept, because its start is the slowest part of opening one. */
const idleFor = 30_000

export interface PtyEvents {
  opened(pid: number): void
  /** It was never opened, or its process died: no more events follow. */
  failed(reason: string): void
  output(bytes: Uint8Array): void
  dropped(bytes: number): void
  /** After all output; the last event. `signal` is a number, 0 for none. */
  exited(exitCode: number, signal: number): void
}

/** The agent's side of the PTY process, which runs while there are PTYs, and briefly after. */
export class PtyHost {
  readonly #ptys = new Map<string, PtyEvents>()
  #channel: PtyChannel<ToPtys, FromPtys> | null = null
  #idle: NodeJS.Timeout | undefined
  readonly #directory: string

  /** The native module may be unpacked in `directory`, as an unnamed file. */
  constructor(directory: string) {
    this.#directory = directory
  }

  open(id: string, request: PtyRequest, events: PtyEvents): void {
    clearTimeout(this.#idle)
    this.#ptys.set(id, events)
    this.#channel ??= this.#start()
    this.#send({ id, to: 'open', request })
  }

  write(id: string, text: string): void {
    this.#send({ id, to: 'write', bytes: Buffer.from(text) })
  }

  resize(id: string, cols: number, rows: number): void {
    this.#send({ id, to: 'resize', cols, rows })
  }

  /** Confirms consumed output bytes: as many may follow. */
  credit(id: string, bytes: number): void {
    this.#send({ id, to: 'credit', count: bytes })
  }

  hangUp(id: string): void {
    this.#send({ id, to: 'hangUp' })
  }

  /** Ends the process; the kernel hangs up its terminals. */
  stop(): void {
    clearTimeout(this.#idle)
    this.#channel?.close()
    this.#channel = null
  }

  #send(message: ToPtys): void {
    if (this.#ptys.has(message.id)) this.#channel?.send(message)
  }

  /** Its own session, so that Ctrl-C at the agent does not end it before its terminals are closed. */
  #start(): PtyChannel<ToPtys, FromPtys> {
    const { file, argv } = ownProcess('__pty', this.#directory)
    const child = spawn(file, argv, {
      env: { PATH: searchPath },
      cwd: '/',
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
    })
    const channel = new PtyChannel<ToPtys, FromPtys>(child.stdio[agentDescriptor] as Socket, (message) =>
      this.#receive(message),
    )
    child.on('error', (error) => this.#lost(channel, error.message))
    // `close`, not `exit`, because only then all its messages have been read.
    child.on('close', (code, signal) => this.#lost(channel, `it ended with ${signal ?? code}`))
    return channel
  }

  #receive(message: FromPtys): void {
    const { id } = message
    const events = this.#ptys.get(id)
    if (message.is === 'opened') events?.opened(message.pid)
    else if (message.is === 'output') events?.output(message.bytes)
    else if (message.is === 'dropped') events?.dropped(message.count)
    else {
      this.#release(id)
      if (message.is === 'exited') events?.exited(message.exitCode, message.signal)
      else events?.failed(message.reason)
    }
  }

  #release(id: string): void {
    this.#ptys.delete(id)
    if (this.#ptys.size === 0) this.#idle = setTimeout(() => this.stop(), idleFor)
  }

  #lost(channel: PtyChannel<ToPtys, FromPtys>, reason: string): void {
    if (this.#channel !== channel) return
    this.#channel = null
    const lost = [...this.#ptys.values()]
    this.#ptys.clear()
    for (const events of lost) events.failed(`the process that holds the terminals is gone: ${reason}`)
  }
}
