import { agentStatuses, containments, type Metrics, sandboxModes } from '../../core/hosts/host.ts'
import { longestReason } from '../../core/protocol/bounds.ts'
import type { HeartbeatRequest, SystemFacts } from '../../core/protocol/http/agent.ts'
import type { Static, TObject } from '../../core/protocol/http/common.ts'
import { BeatFacts, HelloFacts, Metrics as Report } from '../../core/protocol/http/hosts.ts'
import type { AgentHello } from '../../core/protocol/messages.ts'
import { limitNames } from '../../core/tasks/limits.ts'
import { printable } from '../../core/text/printable.ts'
import type { Beat, Greeting } from '../storage/ports/presence.ts'

/** Sanitizes values reported by agents: any content becomes text that every JSON reader accepts (contract §1). */

/** Bytes of a metrics report as JSON, because each answer about a host contains the last one. */
const mostBytes = 32 * 1024

const textOf = <T>(value: T) => (typeof value === 'string' ? printable(value) : value)

/** Loops, because `Object.fromEntries` and spreads would dominate the cost of a heartbeat. */
function textsOf<T extends object>(said: T): T {
  const texts: Record<string, unknown> = {}
  for (const name in said) texts[name] = textOf(said[name])
  return texts as T
}

export function sanitizeFacts<F extends SystemFacts>(facts: F): F {
  const texts = textsOf(facts)
  const addresses = facts.ipAddresses?.map((address) => printable(address))
  return addresses === undefined ? texts : { ...texts, ipAddresses: addresses }
}

/** Keeps the fields of a schema, null if absent, because extra fields of an agent would appear in every answer. */
export function fieldsOf<S extends TObject>(
  { properties }: S,
  said: { readonly [K in keyof Static<S>]?: Static<S>[K] | undefined } | null = {},
): Static<S> {
  const values = said as Record<string, unknown> | null
  const fields: Record<string, unknown> = {}
  for (const name in properties) fields[name] = values?.[name] ?? null
  return fields as Static<S>
}

/** A known value, else undefined: newer agents may send others. */
const knownOf = <T extends string>(known: readonly T[], said: string | undefined): T | undefined =>
  known.find((one) => one === said)

/** Reason for a status that only newer agents know. */
function newerReason(status: string, reason: string | undefined): string {
  const newer = `it reports ${status}, which this server does not know`
  return (reason === undefined ? newer : `${newer}: ${reason}`).slice(0, longestReason)
}

export function beatOf(beat: HeartbeatRequest): Beat {
  const { status, uptime, timestamp, reason } = beat
  const known = knownOf(agentStatuses, status)
  const says = fieldsOf(BeatFacts, beat)
  says.statusReason = known ? (reason ?? null) : newerReason(status, reason)
  return { status: known ?? 'DEGRADED', uptime, timestamp, says: textsOf(says) }
}

export function greetingOf({ agentVersion, capabilities }: AgentHello): Greeting {
  const { limits, sandbox, containment, ...said } = capabilities
  const known = {
    ...said,
    sandbox: knownOf(sandboxModes, sandbox),
    containment: knownOf(containments, containment),
    enforces: limits && limitNames.filter((name) => limits.includes(name)),
  }
  return textsOf({ agentVersion, ...fieldsOf(HelloFacts, known) })
}

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value))

/** Drops the last disks of a report that is too long. */
export function sanitizeMetrics({ timestamp, cpu, memory, network, disk }: Metrics): Metrics {
  const { properties } = Report
  const report: Metrics = {
    timestamp,
    cpu: fieldsOf(properties.cpu, cpu),
    memory: fieldsOf(properties.memory, memory),
    disk: [],
    network: fieldsOf(properties.network, network),
  }
  let bytes = bytesOf(report)
  for (const one of disk) {
    const entry = { ...fieldsOf(properties.disk.items, one), mountPoint: printable(one.mountPoint) }
    if (one.inodesPercent === undefined) delete entry.inodesPercent
    bytes += bytesOf(entry) + 1
    if (bytes > mostBytes) break
    report.disk.push(entry)
  }
  return report
}
