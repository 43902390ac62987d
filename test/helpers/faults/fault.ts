import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { FaultPoint } from '../../../src/core/fault-point.ts'
import { patience } from '../patience.ts'

/** The place where a process ends itself: a fault point, or its Nth visit. */
export type Fault = FaultPoint | `${FaultPoint}@${number}`

/** A point at which a process waits until a file exists. */
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

/** The fault as variables alone, for a process that inherits them. Visits count once the file `from` exists. */
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
      throw new Error(`it did not reach its fault within ${patience} ms`)
    })
  if (child.signalCode !== 'SIGKILL') throw new Error(`it ended with ${child.exitCode ?? child.signalCode}`)
}
