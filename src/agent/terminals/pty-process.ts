import { Socket } from 'node:net'
import { loadNative, type Native } from './native.ts'
import { Pty } from './pty.ts'
import { agentDescriptor, type FromPtys, PtyChannel, type ToPtys } from './pty-channel.ts'

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
