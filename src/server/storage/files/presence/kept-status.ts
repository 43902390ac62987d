import { readFile } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import type { AgentStatus, HostStatus } from '../../../../core/hosts/host.ts'
import type { BeatFacts } from '../../../../core/protocol/http/host-agent.ts'
import { writeFileDurably } from '../../../../disk/durable.ts'
import type { Log } from '../../../../disk/log.ts'
import type { LastKnown } from '../../migrate/kinds.ts'
import type { Greeting } from '../../ports/presence.ts'

/** The last known status of a host, as it is kept over a restart. */
export interface KeptStatus {
  readonly hostId: number
  readonly status: HostStatus
  readonly reason: string | null
  /** ISO 8601. */
  readonly lastHeartbeatAt: string | null
  readonly agentStatus: AgentStatus | null
  /** Absent in files of older servers. */
  readonly running?: Greeting | null
  /** Absent in files of older servers, which have these two of it beside the rest. */
  readonly says?: Partial<BeatFacts>
  readonly onDemand?: boolean | null
  readonly linkFault?: string | null
  /** Since when it has no link: ISO 8601. Absent in files of older servers, as what follows. */
  readonly linkLostAt?: string | null
  /** The measures that warn. */
  readonly warns?: readonly string[]
}

/** Hosts whose rows are made in one turn: of ten thousand at once other requests would wait 20 ms and more. */
const rowsPerBatch = 500

/** A file that can't be written is logged, and no reason to stop. */
export async function saveStatus(path: string, kept: Iterable<KeptStatus>, log: Log): Promise<void> {
  const rows: string[] = []
  for (const row of kept) {
    rows.push(JSON.stringify(row))
    if (rows.length % rowsPerBatch === 0) await setImmediate()
  }
  try {
    await writeFileDurably(path, `[${rows.join(',\n')}]\n`)
  } catch (error) {
    log.warn({ err: error }, 'could not keep the last known status of hosts')
  }
}

/** What a row says of a host, whichever server wrote it. */
export function lastKnownOf(row: KeptStatus): Omit<LastKnown, 'revoked'> {
  const { hostId, status, reason, lastHeartbeatAt, agentStatus, running = null, warns = [] } = row
  const { onDemand = null, linkFault = null, says = { onDemand, linkFault }, linkLostAt = null } = row
  return { hostId, status, reason, lastHeartbeatAt, agentStatus, greeting: running, says, linkLostAt, warns }
}

/** Nothing where there is no file, or none that can be read. */
export async function readKeptStatus(path: string, log: Log): Promise<readonly KeptStatus[]> {
  try {
    const kept: unknown = JSON.parse(await readFile(path, 'utf8'))
    if (!Array.isArray(kept)) throw new Error('it holds no list')
    return kept as KeptStatus[]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      log.warn({ err: error }, 'the last known status of hosts is not readable; starting without it')
    return []
  }
}
