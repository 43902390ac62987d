import { statfs } from 'node:fs/promises'
import { leastFreePercent } from '../../core/agent-state.ts'
import type { AgentStatus } from '../../core/host.ts'

/** How an agent is by the disk of its data directory, and why where that is not HEALTHY. */
export async function health(dataDir: string): Promise<{ status: AgentStatus; reason: string | null }> {
  try {
    const { bavail, blocks } = await statfs(dataDir)
    const percent = (bavail / blocks) * 100
    if (percent >= leastFreePercent) return { status: 'HEALTHY', reason: null }
    return { status: 'DEGRADED', reason: `${Math.floor(percent)} % free on the disk of ${dataDir}` }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    return { status: 'DEGRADED', reason: `its data directory ${dataDir} can not be read${code}` }
  }
}
