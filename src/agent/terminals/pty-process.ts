import { closeSync, constants, fchmodSync, fchownSync, openSync, readSync, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { ReadStream } from 'node:tty'
import { loadNative, type Native } from './native.ts'
import { agentDescriptor, type FromPtys, PtyChannel, type PtyRequest, type ToPtys } from './pty-channel.ts'

class Terminals {
  readonly #ptys = new Map<string, Pty>()
  readonly #directory: string
  readonly #send: (message: FromPtys) => void
  #native: Native | undefined

  constructor(directory: string, send: (message: FromPtys) => void) {
    this.#directory = directory
    this.#send = send
  }

  receive(message: ToPtys): void {
    const { id } = message
    if (message.to === 'open') return this.#open(id, message.request)
    const pty = this.#ptys.get(id)
    if (message.to === 'write') pty?.write(message.bytes)
    else if (message.to === 'resize') pty?.resize(message.cols, message.rows)
    else if (message.to === 'credit') pty?.credit(message.count)
    else pty?.hangUp()
  }

  #open(id: string, request: Extract<ToPtys, { to: 'open' }>['request']): void {
    const send = this.#send
    try {
      this.#native ??= loadNative(this.#directory)
      const pty = new Pty(this.#native, request, {
        output: (bytes) => send({ id, is: 'output', bytes }),
        dropped: (count) => send({ id, is: 'dropped', count }),
        exited: (exitCode, signal) => {
          this.#ptys.delete(id)
          send({ id, is: 'exited', exitCode, signal })
        },
      })
      this.#ptys.set(id, pty)
      send({ id, is: 'opened', pid: pty.pid })
    } catch (error) {
      send({ id, is: 'refused', reason: error instanceof Error ? error.message : String(error) })
    }
  }
}

/**
 * Serves the PTYs of an agent. A separate process, because node-pty leaks their descriptors into other
 * children: a script could read and type in every terminal of its host. It ends with the agent; the kernel
 * then hangs up its terminals. The native module may be unpacked in `directory`.
 */
export function serveTerminals(directory: string): void {
  process.title = 'rsm agent terminals'
  const socket = new Socket({ fd: agentDescriptor, readable: true, writable: true })
  const terminals = new Terminals(directory, (message) => channel.send(message))
  const channel = new PtyChannel<FromPtys, ToPtys>(socket, (message) => terminals.receive(message))
  socket.on('close', () => process.exit())
}

/** Bytes of unacknowledged output; beyond, the program is paused (design "Flow control"). */
const window = 256 * 1024
/** Milliseconds to wait for more output, and the size at which it is sent anyway. */
const coalesce = 4
const fullChunk = 64 * 1024
/** Small pieces sent at once within that time, and their longest: echoes of keys, edited lines. */
const maxSmall = 16
const smallPiece = 512
/** Bytes. The kernel buffers far less (12 KiB), so anything beyond was written after the exit. */
const maxAfterExit = 64 * 1024
/** Bytes of input that the program has not read yet: a large paste fits. */
const maxInput = 4 * 1024 * 1024
/** Milliseconds before a retry when the terminal accepts no more input. */
const firstRetry = 1
const longestRetry = 20

interface PtyEvents {
  output(bytes: Buffer): void
  /** Bytes of input that were dropped, because the program does not read. */
  dropped(bytes: number): void
  /** Once, after all output. `signal` is a number, 0 for none. */
  exited(exitCode: number, signal: number): void
}

function isWouldBlock(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN'
}

/** A lone Ctrl-C or Ctrl-\. */
const isInterrupt = (bytes: Uint8Array): boolean =>
  bytes.length === 1 && (bytes[0] === 0x03 || bytes[0] === 0x1c)

/**
 * A program on its own terminal, leading its own session. Use it in a process that starts no other programs,
 * because they would inherit the terminal.
 */
class Pty {
  readonly pid: number
  readonly #native: Native
  readonly #events: PtyEvents
  readonly #master: ReadStream
  readonly #fd: number
  /** Kept open, so that the program's exit does not hang up the terminal before all output is read. */
  readonly #slave: number
  #isClosed = false
  #unacknowledged = 0
  #pending: Buffer[] = []
  #pendingBytes = 0
  #coalescing: NodeJS.Timeout | null = null
  /** Small pieces already sent within the current interval. */
  #small = 0
  #input: Uint8Array[] = []
  #inputBytes = 0
  /** Input was dropped: drop all further input until the program has read the rest. */
  #isFull = false
  #retry: NodeJS.Timeout | null = null
  #retryAfter = firstRetry

  /** Throws if the system refuses (EAGAIN, no PTY left). */
  constructor(native: Native, { argv, env, cwd, cols, rows, uid }: PtyRequest, events: PtyEvents) {
    this.#native = native
    this.#events = events
    const [file = '', ...args] = argv
    const pairs = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    const { fd, pid, pty } = native.fork(
      file,
      args,
      pairs,
      cwd,
      cols,
      rows,
      -1,
      -1,
      true,
      '',
      (code, signal) => this.#exited(code, signal),
    )
    this.pid = pid
    this.#fd = fd
    this.#slave = openSync(pty, constants.O_RDWR | constants.O_NOCTTY)
    fchmodSync(this.#slave, 0o600)
    if (uid !== process.getuid?.()) fchownSync(this.#slave, uid, -1)
    this.#master = new ReadStream(fd)
    this.#master.on('data', (bytes: Buffer) => this.#take(bytes))
    this.#master.on('error', () => this.#close())
  }

  write(bytes: Uint8Array): void {
    if (this.#isClosed) return
    this.#isFull ||= this.#inputBytes + bytes.length > maxInput
    if (this.#isFull) {
      // Like a terminal, discard pending input before an interrupt: else the program would never get it.
      if (!isInterrupt(bytes)) return this.#events.dropped(bytes.length)
      this.#events.dropped(this.#inputBytes)
      this.#input = []
      this.#inputBytes = 0
    }
    this.#input.push(bytes)
    this.#inputBytes += bytes.length
    if (this.#retry === null) this.#feed()
  }

  resize(cols: number, rows: number): void {
    if (!this.#isClosed) this.#native.resize(this.#fd, cols, rows, 0, 0)
  }

  /** Confirms consumed output bytes. */
  credit(bytes: number): void {
    this.#unacknowledged -= bytes
    if (!this.#isClosed && this.#master.isPaused() && this.#unacknowledged <= window / 2)
      this.#master.resume()
  }

  /** Closes the terminal: the kernel sends HUP to the leader and the foreground processes. */
  hangUp(): void {
    if (this.#isClosed) return
    this.#flush()
    this.#close()
  }

  #take(bytes: Buffer): void {
    this.#unacknowledged += bytes.length
    if (this.#unacknowledged >= window) this.#master.pause()
    this.#pending.push(bytes)
    this.#pendingBytes += bytes.length
    const isSmall = this.#pendingBytes <= smallPiece && this.#small < maxSmall
    if (isSmall) this.#small++
    // Send floods in large pieces, because each piece costs every hop the same, however short.
    if (isSmall || this.#coalescing === null || this.#pendingBytes >= fullChunk) this.#flush()
    this.#coalescing ??= setTimeout(() => this.#coalesced(), coalesce)
  }

  #coalesced(): void {
    this.#coalescing = null
    this.#small = 0
    if (this.#pendingBytes === 0) return
    this.#flush()
    this.#coalescing = setTimeout(() => this.#coalesced(), coalesce)
  }

  #flush(): void {
    if (this.#pendingBytes === 0) return
    const bytes = Buffer.concat(this.#pending, this.#pendingBytes)
    this.#pending = []
    this.#pendingBytes = 0
    this.#events.output(bytes)
  }

  #feed(): void {
    this.#retry = null
    try {
      for (let [bytes] = this.#input; bytes !== undefined; [bytes] = this.#input) {
        const written = writeSync(this.#fd, bytes)
        this.#inputBytes -= written
        this.#retryAfter = firstRetry
        if (written === bytes.length) this.#input.shift()
        else this.#input[0] = bytes.subarray(written)
      }
      this.#isFull = false
    } catch (error) {
      if (isWouldBlock(error)) {
        this.#retry = setTimeout(() => this.#feed(), this.#retryAfter)
        this.#retryAfter = Math.min(this.#retryAfter * 2, longestRetry)
        return
      }
      // No process is left to read it.
      this.#input = []
      this.#inputBytes = 0
    }
  }

  #exited(exitCode: number, signal: number): void {
    if (!this.#isClosed) this.#readRest()
    this.hangUp()
    this.#events.exited(exitCode, signal)
  }

  /** Reads the output before the exit, even when paused: the kernel buffers only a few KiB. */
  #readRest(): void {
    this.#master.pause()
    // Data that the stream has read already arrives as `data`.
    while (this.#master.read() !== null);
    const rest = Buffer.allocUnsafe(maxAfterExit)
    let length = 0
    try {
      while (length < maxAfterExit) {
        const read = readSync(this.#fd, rest, length, maxAfterExit - length, null)
        if (read === 0) break
        length += read
      }
    } catch {
      // EAGAIN: no more output. EIO: the terminal was hung up.
    }
    if (length > 0) this.#take(rest.subarray(0, length))
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#coalescing) clearTimeout(this.#coalescing)
    if (this.#retry) clearTimeout(this.#retry)
    this.#master.destroy()
    closeSync(this.#slave)
  }
}
