import { setTimeout as pause } from 'node:timers/promises'
import { isAlive, type ProcessId } from './machine.ts'

const lookEvery = 250

/** Ends a process, by SIGKILL after so many milliseconds. Nothing happens to another that has its pid by now. */
export async function endProcess(id: ProcessId, within = 15_000): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!isAlive(id)) return
    try {
      process.kill(id.pid, signal)
    } catch {
      return
    }
    for (let waited = 0; waited < within && isAlive(id); waited += lookEvery) await pause(lookEvery)
  }
}
