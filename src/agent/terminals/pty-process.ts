/**
 * Holds the PTYs of an agent's sessions while there are any. In a process of its own, as node-pty leaves them open to
 * whatever the agent starts: a script could read and type in every terminal of its host. It ends with the agent, and
 * with it each terminal, which the kernel then hangs up.
 */
import { Pty } from './pty.ts'
import type { FromPtys, ToPtys } from './pty-messages.ts'

const ptys = new Map<string, Pty>()

function tell(message: FromPtys): void {
  if (process.connected) process.send?.(message)
}

function open(id: string, request: Extract<ToPtys, { to: 'open' }>['request']): void {
  try {
    const pty = new Pty(request, {
      output: (bytes) => tell({ id, is: 'output', bytes }),
      dropped: (bytes) => tell({ id, is: 'dropped', bytes }),
      exited(exitCode, signal) {
        ptys.delete(id)
        tell({ id, is: 'exited', exitCode, signal })
      },
    })
    ptys.set(id, pty)
    tell({ id, is: 'opened', pid: pty.pid })
  } catch (error) {
    tell({ id, is: 'refused', reason: error instanceof Error ? error.message : String(error) })
  }
}

process.title = 'rsm agent terminals'
process.on('message', (message: ToPtys) => {
  const { id } = message
  if (message.to === 'open') return open(id, message.request)
  const pty = ptys.get(id)
  if (message.to === 'write') pty?.write(message.text)
  else if (message.to === 'resize') pty?.resize(message.cols, message.rows)
  else if (message.to === 'credit') pty?.credit(message.bytes)
  else pty?.hangUp()
})
process.on('disconnect', () => process.exit())
