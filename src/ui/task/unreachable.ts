import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import type { TaskResult } from '../../core/task/task.ts'
import { standingOf } from '../hosts/standing.ts'
import { tellsHostState } from '../output/outcome.ts'
import { shellWord } from '../text/shell-word.ts'

/** Hosts whose server is asked why they are not reachable, as their results do not say. */
const mostAsked = 3

interface Explanation {
  /** `web1 is OFFLINE: never heard`, of those whose result does not say so. */
  readonly lines: readonly string[]
  /** What to type to learn more; undefined where all of them are back. */
  readonly next: string | undefined
}

/** Why hosts were not reachable, and one command that examines all of them. */
export async function explainUnreachable(
  client: Client,
  results: readonly Pick<TaskResult, 'hostId' | 'hostname' | 'error'>[],
): Promise<Explanation> {
  const away = results.filter(tellsHostState).map(({ hostname }) => hostname)
  const lines: string[] = []
  const silent = results.filter((result) => !tellsHostState(result))
  for (const { hostId, hostname } of silent.slice(0, mostAsked)) {
    const host = await client.hosts.get(hostId).catch((error: unknown) => {
      if (error instanceof RsmError) return undefined
      throw error
    })
    if (host === undefined || host.statusReason === null) continue
    lines.push(`${hostname} is ${standingOf(host)}`)
    away.push(hostname)
  }
  const next = away.length === 0 ? undefined : `rsm hosts doctor ${shellWord(foldNodeset(away))}`
  return { lines, next }
}
