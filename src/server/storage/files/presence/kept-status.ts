import { readFile } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import type { AgentStatus, HostStatus } from '../../../../core/hosts/host.ts'
import type { BeatFacts } from '../../../../core/protocol/http/hosts.ts'
import { isMissing, writeFileDurably } from '../../../../disk/durable.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Greeting } from '../../ports/presence.ts'
import type { LastKnown } from '../../streams.ts'

export interface KeptStatus {
  readonly hostId: number
  readonly status: HostStatus
  readonly reason: string | null
  /** ISO 8601. */
  readonly lastHeartbeatAt: string | null
  readonly agentStatus: AgentStatus | null
  /** Absent in files of older servers. */
  readonly running?: Greeting | null
  /** Absent in files of older servers, which have the next two fields instead. */
  readonly says?: Partial<BeatFacts>
  readonly onDemand?: boolean | null
  readonly linkFault?: string | null
  /** When it lost its link: ISO 8601. Absent in files of older servers, like the next field. */
  readonly linkLostAt?: string | null
  /** Measures that warn. */
  readonly warns?: readonly string[]
}

/**
 * Hosts whose rows are built in one turn: ten thousand at once would delay other requests by 20 ms and more.
 */
const rowsPerBatch = 500

export async function saveStatus(path: string, kept: Iterable<KeptStatus>, log: Log): Promise<void> {
  const rows: string[] = []
  for (const row of kept) {
    rows.push(JSON.stringify(row))
    if (rows.length % rowsPerBatch === 0) await setImmediate()
  }
  try {
    await writeFileDurably(path, `[${rows.join(',\n')}]\n`)
  } catch (error) {
    log.warn({ err: error }, 'cannot save the last known status of hosts')
  }
}

/** Last known status in a row, written by any version of the server. */
export function lastKnownOf(row: KeptStatus): Omit<LastKnown, 'revoked'> {
  const { hostId, status, reason, lastHeartbeatAt, agentStatus, running = null, warns = [] } = row
  const { onDemand = null, linkFault = null, says = { onDemand, linkFault }, linkLostAt = null } = row
  return { hostId, status, reason, lastHeartbeatAt, agentStatus, greeting: running, says, linkLostAt, warns }
}

/** Empty if the file is missing or unreadable. */
export async function readKeptStatus(path: string, log: Log): Promise<readonly KeptStatus[]> {
  try {
    const kept: unknown = JSON.parse(await readFile(path, 'utf8'))
    if (!Array.isArray(kept)) throw new Error('it is not a list')
    return kept as KeptStatus[]
  } catch (error) {
    if (!isMissing(error))
      log.warn({ err: error }, 'the last known status of hosts is not readable; starting without it')
    return []
  }
}
