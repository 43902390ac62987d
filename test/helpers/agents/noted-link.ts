import type { ExecuteScript, Payloads, ScriptAck } from '../../../src/core/protocol/messages.ts'
import type { AgentLink } from '../../../src/server/storage/ports/cluster.ts'

let epochs = 0

/** A link that only records its frames; one that is not `up` sends no frame. */
export function noted(hostId: number) {
  const executions: ExecuteScript[] = []
  const released: string[] = []
  /** Sequences of acknowledgements, in order of arrival. */
  const acknowledged: number[] = []
  /** Tasks whose cancel was sent. */
  const cancelled: string[] = []
  const closed: number[] = []
  /** Codes of ERROR frames, and the subjects of frames that count as unknown to the host. */
  const errors: number[] = []
  const strays: string[] = []
  const state = { up: true }
  const link: AgentLink = {
    hostId,
    agentId: `agent-${hostId}`,
    claim: {
      hostId,
      agentId: `agent-${hostId}`,
      server: { name: 'server', epoch: 1 },
      epoch: ++epochs,
      since: new Date().toISOString(),
    },
    hello: {
      agentVersion: 'test',
      storeId: `journal-${hostId}`,
      capabilities: { maxExecutions: 16, scriptTypes: ['BASH'], containment: 'cgroup', terminal: false },
      tasks: [],
    },
    get isOpen() {
      return state.up
    },
    send(type, payload) {
      if (!state.up) return false
      if (type === 'EXECUTE_SCRIPT') executions.push(payload as ExecuteScript)
      const { taskId, sequence, complete } = payload as ScriptAck
      if (type === 'ERROR') errors.push((payload as Payloads['ERROR']).code)
      if (type === 'CANCEL_SCRIPT') cancelled.push(taskId)
      if (type === 'SCRIPT_ACK' && complete) released.push(taskId)
      if (type === 'SCRIPT_ACK' && sequence !== undefined) acknowledged.push(sequence)
      return true
    },
    stray: (about) => void strays.push(about),
    close(code) {
      state.up = false
      closed.push(code)
    },
  }
  return { link, executions, released, acknowledged, cancelled, closed, errors, strays, state }
}

/** The end of a script as an rsm agent reports it. */
export const end = (taskId: string, exitCode: number, lastSequence = -1) => ({
  taskId,
  exitCode,
  duration: 1,
  startedAt: new Date().toISOString(),
  completedAt: new Date().toISOString(),
  lastSequence,
})
