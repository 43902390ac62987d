import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { FaultPoint } from '../../../src/core/fault-point.ts'
import { patience } from '../patience.ts'

/** Where a process ends itself: a fault point, or the Nth time that it comes there. */
export type Fault = FaultPoint | `${FaultPoint}@${number}`

/** What a process stops at until a file is there. */
export interface Hold {
  point: FaultPoint
  gate: string
}

/** Arguments and variables of a Node process with a fault. */
export function withFault(
  fault?: Fault | null,
  hold?: Hold,
): { execArgv: string[]; env: Record<string, string> } {
  if (!fault && !hold) return { execArgv: [], env: {} }
  return {
    execArgv: ['--conditions=rsm-faults'],
    env: { ...(fault && { RSM_FAULT: fault }), ...(hold && { RSM_HOLD: `${hold.point}=${hold.gate}` }) },
  }
}

/** The same in variables alone: of a process that is started with them. It counts from when the file `from` is there. */
export const faultVariables = (fault: Fault, hold?: Hold, from?: string): Record<string, string> => ({
  ...withFault(fault, hold).env,
  ...(from !== undefined && { RSM_FAULT_FROM: from }),
  NODE_OPTIONS: '--conditions=rsm-faults',
})

/** Settles when the process has killed itself. Rejects when it ends in any other way. */
export async function crashed(child: ChildProcess): Promise<void> {
  const signal = AbortSignal.timeout(patience)
  if (child.exitCode === null && child.signalCode === null)
    await once(child, 'exit', { signal }).catch(() => {
      throw new Error(`it did not come to its fault within ${patience} ms`)
    })
  if (child.signalCode !== 'SIGKILL') throw new Error(`it ended with ${child.exitCode ?? child.signalCode}`)
}
