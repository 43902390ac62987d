import { statfs } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { AgentFacts } from '../../core/checks/examine-agent.ts'
import { agentsHere } from './agents-here.ts'
import { type RunningState, readAgentState } from './read-state.ts'

/**
 * The state of the agent that runs on this data directory, and what is seen around it. Rejects as `readAgentState`
 * throws.
 */
export async function readAgentFacts(
  directory: string,
  dataDirOption: string,
): Promise<{ state: RunningState; facts: AgentFacts }> {
  const dataDir = resolve(directory)
  const state = readAgentState(dataDir, dataDirOption)
  const figures = await statfs(dataDir).catch(() => null)
  const freePercent = figures && figures.blocks > 0 ? (figures.bavail / figures.blocks) * 100 : null
  const others = agentsHere().filter(({ pid }) => pid !== state.pid)
  return { state, facts: { ...state, dataDir, freePercent, others } }
}
