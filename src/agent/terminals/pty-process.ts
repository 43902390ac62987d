/**
 * Holds the PTYs of an agent's sessions while there are any. In a process of its own, as node-pty leaves them open to
 * whatever the agent starts: a script could read and type in every terminal of its host. It ends with the agent, and
 * with it each terminal, which the kernel then hangs up.
 */
import { Socket } from 'node:net'
import { Pty } from './pty.ts'
import { PtyChannel } from './pty-channel.ts'
import { agentDescriptor, type FromPtys, type ToPtys } from './pty-messages.ts'

const ptys = new Map<string, Pty>()

function open(id: string, request: Extract<ToPtys, { to: 'open' }>['request']): void {
  try {
    const pty = new Pty(request, {
      output: (bytes) => channel.send({ id, is: 'output', bytes }),
      dropped: (count) => channel.send({ id, is: 'dropped', count }),
      exited(exitCode, signal) {
        ptys.delete(id)
        channel.send({ id, is: 'exited', exitCode, signal })
      },
    })
    ptys.set(id, pty)
    channel.send({ id, is: 'opened', pid: pty.pid })
  } catch (error) {
    channel.send({ id, is: 'refused', reason: error instanceof Error ? error.message : String(error) })
  }
}

function heard(message: ToPtys): void {
  const { id } = message
  if (message.to === 'open') return open(id, message.request)
  const pty = ptys.get(id)
  if (message.to === 'write') pty?.write(message.bytes)
  else if (message.to === 'resize') pty?.resize(message.cols, message.rows)
  else if (message.to === 'credit') pty?.credit(message.count)
  else pty?.hangUp()
}

process.title = 'rsm agent terminals'
const socket = new Socket({ fd: agentDescriptor, readable: true, writable: true })
const channel = new PtyChannel<FromPtys, ToPtys>(socket, heard)
socket.on('close', () => process.exit())
