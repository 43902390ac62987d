import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isAlive } from '../processes/machine.ts'
import { type KeptState, stateFileName } from '../reports/status-file.ts'

/** What the agent that runs on this data directory says of itself; null where none runs. */
export function runningState(dataDir: string): KeptState | null {
  try {
    const state = JSON.parse(readFileSync(join(dataDir, stateFileName), 'utf8')) as KeptState
    return isAlive(state) ? state : null
  } catch {
    return null
  }
}

/** Whether its server hears it: linked, or heard where it links on demand. */
export function isHeard({ linked, onDemand, lastHeartbeatAt, heartbeatFault }: KeptState): boolean {
  return linked || (onDemand && lastHeartbeatAt !== null && heartbeatFault === null)
}
