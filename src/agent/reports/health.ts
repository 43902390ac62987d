import { statfs } from 'node:fs/promises'
import type { AgentStatus } from '../../core/protocol/http/hosts.ts'

/** Below this share of free space in the data directory the agent is DEGRADED: spools may fail. */
const leastFree = 0.03

/** How an agent is by the disk of its data directory, and why where that is not HEALTHY. */
export async function health(dataDir: string): Promise<{ status: AgentStatus; reason: string | null }> {
  try {
    const { bavail, blocks } = await statfs(dataDir)
    if (bavail / blocks >= leastFree) return { status: 'HEALTHY', reason: null }
    const percent = Math.floor((bavail / blocks) * 100)
    return { status: 'DEGRADED', reason: `${percent} % free on the disk of ${dataDir}` }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    return { status: 'DEGRADED', reason: `its data directory ${dataDir} can not be read${code}` }
  }
}
